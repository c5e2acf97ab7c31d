/** What the store's threads are asked about sinks. */
import type { ReplayWish, SinkItem, Sinks } from '../domain/sinks.ts';

type Options<Call extends keyof Sinks> = Parameters<Sinks[Call]>[0];

export type EnqueueItemsOptions = Options<'enqueue'>;
export type SettleItemsOptions = Options<'settle'>;
export type RetryItemsOptions = Options<'retry'>;
export type DropItemsOptions = Options<'drop'>;
export type AddReplayOptions = Options<'addReplay'>;
export type DueItemsOptions = Options<'due'>;
export type ReplaysOptions = Options<'replays'>;

/** A change: one transaction on the writer thread. */
export type SinkChange =
  | { kind: 'enqueue'; options: EnqueueItemsOptions }
  | { kind: 'settle'; options: SettleItemsOptions }
  | { kind: 'retry'; options: RetryItemsOptions }
  | { kind: 'drop'; options: DropItemsOptions }
  | { kind: 'add-replay'; options: AddReplayOptions };

/** A page of items, newest first. */
export interface ItemsPage {
  sink: string | undefined;
  state: SinkItem['state'];
  beforeId: number;
  rowsMax: number;
}

/** A question for the query thread. */
export type SinkQuestion =
  | { kind: 'due'; options: DueItemsOptions }
  | { kind: 'next-due'; sink: string }
  | ({ kind: 'items' } & ItemsPage)
  | { kind: 'counts' }
  | { kind: 'deliveries' }
  | { kind: 'same-replay'; wish: ReplayWish }
  | { kind: 'replays'; options: ReplaysOptions };
