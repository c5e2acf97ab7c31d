/** Bodies of failed responses: read up to a limit, whatever they do. */
import { describe, expect, it } from 'vitest';
import { readBeginning } from '../../../src/core/http/bounded-fetch.ts';

/** A body that gives these pieces and then runs `end`; records whether it was cancelled. */
function bodyOf(pieces: Iterable<string>, end: (to: ReadableStreamDefaultController) => void) {
  const state = { left: false };
  const source = pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      const { done, value } = source.next();
      if (done) end(controller);
      else controller.enqueue(Buffer.from(value));
    },
    cancel: () => {
      state.left = true;
    },
  });
  return { state, body };
}

const textOf = async (...args: Parameters<typeof readBeginning>) =>
  Buffer.concat(await readBeginning(...args)).toString();

describe('the beginning of a body', () => {
  it('is all of a short body, and empty for a missing one', async () => {
    const { body } = bodyOf(['no ', 'space'], (to) => to.close());
    expect(await textOf(body)).toBe('no space');
    expect(await readBeginning(null)).toEqual([]);
  });

  it('is 64 KiB of an endless body, which is cancelled', async () => {
    const endless = (function* () {
      for (;;) yield 'x'.repeat(1_000);
    })();
    const { body, state } = bodyOf(endless, () => undefined);
    expect(await textOf(body)).toHaveLength(66_000);
    expect(state.left).toBe(true);
  });

  it('is the received part of a body that breaks', async () => {
    const { body } = bodyOf(['no ro'], (to) => to.error(new Error('It broke.')));
    expect(await textOf(body)).toBe('no ro');
  });

  it('is the received part of a body that stalls, which is cancelled', async () => {
    const { body, state } = bodyOf(['no ro'], () => undefined);
    expect(await textOf(body, { timeoutMs: 20 })).toBe('no ro');
    expect(state.left).toBe(true);
  });
});
