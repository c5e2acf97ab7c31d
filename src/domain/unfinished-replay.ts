/** The refusal of a replay that another one, which has not finished, makes unnecessary. */
import { AppError } from './app-error.ts';
import { shortDateUs } from './notification-date.ts';
import type { Replay } from './sinks.ts';

export function unfinishedReplay({ id, sink, requestedAtUs }: Replay): AppError {
  return new AppError(
    'conflict',
    `Replay ${id}, asked for at ${shortDateUs(requestedAtUs)} (UTC), hands the same over to ${sink}, and has not finished.`,
    { advice: 'It goes on by itself while the receiver runs: `earshot sinks list`.' },
  );
}
