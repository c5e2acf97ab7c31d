/** Asks before something is changed. */
import { AppError } from '../domain/app-error.ts';
import type { Io } from './io.ts';

/**
 * Resolves when the user agrees, or has said `--yes`. Throws `usage` when there is no terminal to ask
 * on, `cancelled` when the answer is anything but yes.
 */
export async function confirm(
  io: Pick<Io, 'ask'>,
  question: string,
  { yes }: { yes?: boolean | undefined },
): Promise<void> {
  if (yes) return;
  const answer = await io.ask(`${question} [y/N] `);
  if (answer === null) {
    throw new AppError('usage', 'There is no terminal to ask on, so nothing was changed.', {
      advice: 'Add --yes to do it without a question.',
    });
  }
  if (/^y(es)?$/i.test(answer.trim())) return;
  throw new AppError('cancelled', 'Nothing was changed.');
}
