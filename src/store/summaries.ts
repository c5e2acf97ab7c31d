/** The summaries' side of the store, over its two threads. */
import type {
  Summaries,
  SummaryClaim,
  SummaryJob,
  SummaryReader,
  SummaryRow,
  SummarySpending,
  SummaryState,
  SummaryText,
} from '../domain/summaries.ts';
import { changeAll } from './change-all.ts';
import type { MessageThread, QueryRequest, WriterRequest } from './messages.ts';
import { pages } from './pages.ts';
import type { SummaryChange, SummaryQuestion } from './summary-messages.ts';

/** The questions, asked on the query thread. */
export function createSummaryReader(thread: MessageThread<QueryRequest>): SummaryReader {
  const ask = <Answer>(question: SummaryQuestion) =>
    thread.call<Answer>((id) => ({ op: 'ask-summaries', id, question }));
  return {
    find: (query) =>
      pages<SummaryRow>(query.limit, (rowsMax, last) => {
        const bounds = last === undefined ? {} : { beforeId: last.id };
        return ask({ kind: 'find', query: { ...query, ...bounds }, rowsMax });
      }),
    textsOf: (productIds) => ask<Map<string, SummaryText>>({ kind: 'texts-of', productIds }),
    due: (options) => ask<SummaryJob[]>({ kind: 'due', options }),
    nextDueAtUs: () => ask<number | null>({ kind: 'next-due' }),
    known: (key) => ask<SummaryText | null>({ kind: 'known', key }),
    spending: (nowUs) => ask<SummarySpending>({ kind: 'spending', nowUs }),
    counts: () => ask<Record<SummaryState, number>>({ kind: 'counts' }),
    backlog: () => ask<{ waiting: number; failed: number }>({ kind: 'backlog' }),
  };
}

/** The questions of a reader, and the changes, made on the writer thread. */
export function createSummaries(
  reader: SummaryReader,
  thread: MessageThread<WriterRequest>,
): Summaries {
  const change = <Answer>(asked: SummaryChange) =>
    thread.call<Answer>((id) => ({ op: 'change-summaries', id, change: asked }));
  return {
    ...reader,
    enqueue: (options) => change<{ ids: number[]; dropped: number }>({ kind: 'enqueue', options }),
    claim: (options) => change<SummaryClaim>({ kind: 'claim', options }),
    settle: (options) => change<void>({ kind: 'settle', options }),
    retry: (options) => changeAll(() => change<number>({ kind: 'retry', options })),
    drop: (options) => changeAll(() => change<number>({ kind: 'drop', options })),
  };
}
