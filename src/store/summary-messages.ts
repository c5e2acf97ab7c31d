/** What the store's threads are asked about summaries. */
import type { Summaries, SummaryQuery } from '../domain/summaries.ts';

export type EnqueueOptions = Parameters<Summaries['enqueue']>[0];
export type ClaimOptions = Parameters<Summaries['claim']>[0];
export type SettleOptions = Parameters<Summaries['settle']>[0];
export type RetryOptions = Parameters<Summaries['retry']>[0];
export type DropOptions = Parameters<Summaries['drop']>[0];
export type DueOptions = Parameters<Summaries['due']>[0];

/** A change: one transaction on the writer thread. */
export type SummaryChange =
  | { kind: 'enqueue'; options: EnqueueOptions }
  | { kind: 'claim'; options: ClaimOptions }
  | { kind: 'settle'; options: SettleOptions }
  | { kind: 'retry'; options: RetryOptions }
  | { kind: 'drop'; options: DropOptions };

/** A question for the query thread. */
export type SummaryQuestion =
  | { kind: 'find'; query: SummaryQuery; rowsMax: number }
  | { kind: 'texts-of'; productIds: readonly string[] }
  | { kind: 'due'; options: DueOptions }
  | { kind: 'next-due' }
  | { kind: 'known'; key: Uint8Array }
  | { kind: 'spending'; nowUs: number }
  | { kind: 'counts' }
  | { kind: 'backlog' };
