/** The sinks' side of the store, over its two threads. */
import type {
  Replay,
  SinkCounts,
  SinkDeliveries,
  SinkItem,
  SinkReader,
  Sinks,
} from '../domain/sinks.ts';
import { changeAll } from './change-all.ts';
import type { MessageThread, QueryRequest, WriterRequest } from './messages.ts';
import { pages } from './pages.ts';
import type { SinkChange, SinkQuestion } from './sink-messages.ts';

/** The questions, asked on the query thread. */
export function createSinkReader(thread: MessageThread<QueryRequest>): SinkReader {
  const ask = <Answer>(question: SinkQuestion) =>
    thread.call<Answer>((id) => ({ op: 'ask-sinks', id, question }));
  return {
    due: (options) => ask<SinkItem[]>({ kind: 'due', options }),
    nextDueAtUs: (sink) => ask<number | null>({ kind: 'next-due', sink }),
    items: ({ sink, state, limit }) =>
      pages<SinkItem>(limit, (rowsMax, last) => {
        const beforeId = last?.id ?? Number.MAX_SAFE_INTEGER;
        return ask({ kind: 'items', sink, state, beforeId, rowsMax });
      }),
    deliveries: () => ask<SinkDeliveries[]>({ kind: 'deliveries' }),
    counts: () => ask<SinkCounts[]>({ kind: 'counts' }),
    sameReplay: (wish) => ask<Replay | null>({ kind: 'same-replay', wish }),
    replays: (options) => ask<Replay[]>({ kind: 'replays', options }),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createSinks(reader: SinkReader, thread: MessageThread<WriterRequest>): Sinks {
  const change = <Answer>(asked: SinkChange) =>
    thread.call<Answer>((id) => ({ op: 'change-sinks', id, change: asked }));
  return {
    ...reader,
    enqueue: (options) => change<boolean>({ kind: 'enqueue', options }),
    settle: (options) => change<void>({ kind: 'settle', options }),
    retry: (options) => changeAll(() => change<number>({ kind: 'retry', options })),
    drop: (options) => changeAll(() => change<number>({ kind: 'drop', options })),
    addReplay: (options) => change<Replay>({ kind: 'add-replay', options }),
  };
}
