/** The pruning of the log, over the store's two threads. */
import type {
  LogHolder,
  LogSize,
  Prunable,
  PruneHorizon,
  PruneStep,
  Pruning,
  PruningReader,
} from '../../domain/pruning.ts';
import type { MessageThread, QueryRequest, WriterRequest } from '../messages.ts';
import type { PruneQuestion } from './prune-messages.ts';

/** The questions, asked on the query thread. */
export function createPruningReader(thread: MessageThread<QueryRequest>): PruningReader {
  const ask = <Answer>(question: PruneQuestion) =>
    thread.call<Answer>((id) => ({ op: 'ask-pruning', id, question }));
  return {
    pruneHorizon: () => ask<PruneHorizon | null>({ kind: 'horizon' }),
    logHolders: () => ask<LogHolder[]>({ kind: 'holders' }),
    logSize: () => ask<LogSize>({ kind: 'size' }),
    prunable: (wish) => ask<Prunable>({ kind: 'prunable', wish }),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createPruning(
  reader: PruningReader,
  thread: MessageThread<WriterRequest>,
): Pruning {
  return {
    ...reader,
    pruneStep: (options) => thread.call<PruneStep>((id) => ({ op: 'prune-step', id, options })),
    checkpoint: () => thread.call<void>((id) => ({ op: 'checkpoint', id })),
    forgetReader: (key) => thread.call<boolean>((id) => ({ op: 'forget-reader', id, key })),
  };
}
