/** The side of completeness of the store, over its two threads. */
import type {
  Completeness,
  CompletenessReader,
  Definition,
  HourArrivals,
  HourCoverage,
  ReconcileRun,
  RecoveredEvent,
  Uptime,
} from '../domain/completeness.ts';
import type { CompletenessChange, CompletenessQuestion } from './completeness-messages.ts';
import type { MessageThread, QueryRequest, WriterRequest } from './messages.ts';

/** The questions, asked on the query thread. */
export function createCompletenessReader(thread: MessageThread<QueryRequest>): CompletenessReader {
  const ask = <Answer>(question: CompletenessQuestion) =>
    thread.call<Answer>((id) => ({ op: 'ask-completeness', id, question }));
  return {
    recoveredEvents: (options) => ask<RecoveredEvent[]>({ kind: 'recovered-events', options }),
    definitions: () => ask<Definition[]>({ kind: 'definitions' }),
    uptimes: (sinceUs) => ask<Uptime[]>({ kind: 'uptimes', sinceUs }),
    coverage: (options) => ask<HourCoverage[]>({ kind: 'coverage', options }),
    arrivals: (options) => ask<HourArrivals[]>({ kind: 'arrivals', options }),
    wholeSinceUs: () => ask<number>({ kind: 'whole-since' }),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createCompleteness(
  reader: CompletenessReader,
  thread: MessageThread<WriterRequest>,
): Completeness {
  const change = <Answer>(asked: CompletenessChange) =>
    thread.call<Answer>((id) => ({ op: 'change-completeness', id, change: asked }));
  return {
    ...reader,
    recover: (options) => change<(number | null)[]>({ kind: 'recover', options }),
    saveCoverage: (options) => change<void>({ kind: 'save-coverage', options }),
    markUp: (options) => change<void>({ kind: 'mark-up', options }),
    beginRun: (options) => change<ReconcileRun>({ kind: 'begin-run', options }),
    endRun: (options) => change<void>({ kind: 'end-run', options }),
  };
}
