/** The database of the shared log, as its thread and the main thread know it. */
import { AppError } from '../../core/terms/app-error.ts';
import type { DatabaseWarning } from './terms.ts';

/** Error codes of our own functions. The class `ES` is not used by PostgreSQL. */
export const sqlErrors = {
  notOpen: 'ES001',
  leaseLost: 'ES002',
  receivedSince: 'ES003',
  reused: 'ES004',
  noStandby: 'ES005',
} as const;

/** Timeout of reading and upkeep. */
export const queryTimeoutMs = 10_000;

/** Time in which the database waits for a lock. */
export const lockTimeoutMs = 3_000;

/** Timeout of short statements, which somebody waits for: longer than the wait for a lock. */
export const answerMs = 3_500;

/** Operations of the thread. */
export interface DatabaseOperations {
  query(
    context: unknown,
    sql: string,
    values: readonly unknown[],
    timeoutMs: number,
  ): Promise<Record<string, unknown>[]>;
  listen(context: unknown, channel: string): Promise<boolean>;
}

/** Events of the thread. A message may stand for several. */
export type DatabaseEvent =
  | { kind: 'message' }
  | { kind: 'end' }
  | ({ kind: 'warning' } & DatabaseWarning);

/** Messages for the errors of our own functions. */
export const ownErrors: Record<string, ConstructorParameters<typeof AppError>> = {
  [sqlErrors.notOpen]: [
    'unavailable',
    'The shared log is closed.',
    {
      advice: 'Stop this receiver, or see "Back to one" in docs/several-receivers.md.',
      facts: { reason: 'not-open' },
    },
  ],
  [sqlErrors.leaseLost]: [
    'conflict',
    'Another receiver has taken over this job.',
    { facts: { reason: 'lease-lost' } },
  ],
  [sqlErrors.receivedSince]: [
    'conflict',
    'A product was received in the meantime.',
    { facts: { reason: 'received-since' } },
  ],
  [sqlErrors.reused]: [
    'conflict',
    'The AckId was already used with different content.',
    { facts: { reason: 'reused' } },
  ],
  [sqlErrors.noStandby]: [
    'unavailable',
    'The database has no synchronous standby, but EARSHOT_LOG_SYNC is standby.',
    { advice: 'Set synchronous_standby_names on the database, or EARSHOT_LOG_SYNC to any.' },
  ],
};

export function closedLog(): AppError {
  return new AppError(...(ownErrors[sqlErrors.notOpen] as ConstructorParameters<typeof AppError>));
}
