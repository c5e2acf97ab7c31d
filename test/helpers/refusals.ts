/** Refusals by their code. */
import { expect } from 'vitest';

/** Expects that a promise is rejected with this code, and a text that contains the words. */
export const expectRefused = (
  refused: Promise<unknown>,
  code: string,
  words = '',
): Promise<void> => {
  const text = words === '' ? {} : { text: expect.stringContaining(words) };
  return expect(refused).rejects.toMatchObject({ code, ...text });
};
