/** Sample items, documents and replays for tests of sinks. */
import type { Cursors } from '../../../src/core/terms/ports.ts';
import type { NotificationDocument } from '../../../src/features/messages/document.ts';
import { type SinkItem, type Sinks, sinkReader } from '../../../src/features/sinks/terms.ts';
import { collect } from '../../helpers/deliveries.ts';

export const atUs = 1_795_000_000_000_001;

/** A document without a record. */
export const sinkDocument: NotificationDocument = {
  ...{ id: 'n_1_a', notificationId: 'n_1_a', replay: false, sink: 'bus', position: 1 },
  ...{ subscription: 'alps', event: 'created', productId: 'p-1', productName: 'S2A_X.SAFE' },
  ...{ subscriptionId: null, ackId: null, notificationDate: null },
  ...{ receivedAt: '2026-11-20T06:00:00.000000Z', source: 'push', value: null },
};

export type SinkStore = Pick<Cursors, 'cursor' | 'moveCursor'> & { sinks: Sinks };

type Settled = Parameters<Sinks['settle']>[0][number];

/** Queues one item per product, after the items queued before. */
export async function queued(
  store: SinkStore,
  products: readonly string[],
  options: {
    sink?: string;
    replayId?: number | null;
    upTo?: number;
    atUs?: number;
    tooOld?: number;
  } = {},
): Promise<SinkItem[]> {
  const { sink = 'act', replayId = null } = options;
  const replay = replayId === null ? null : await store.sinks.replay(sink);
  const after = replay?.position ?? (await store.cursor(sinkReader(sink))) ?? 0;
  const items = products.map((productId, i) => ({ productId, position: after + i + 1 }));
  const upTo = after + products.length;
  const read = { sink, replayId, after, upTo, items, atUs, ...options };
  if (!(await store.sinks.enqueue(read))) throw new Error('nothing was queued');
  const newest = store.sinks.items({ sink, state: 'waiting', limit: products.length });
  return (await collect(newest)).toReversed();
}

/** A replay of the log from its start up to `lastPosition`. */
export const replayOf = (
  lastPosition: number,
  fields: { sink?: string; filter?: string } = {},
) => ({
  sink: 'act',
  filter: "contains(Name,'Kärnten €')",
  sinceUs: atUs - 9,
  untilUs: null,
  afterPosition: 0,
  lastPosition,
  requestedAtUs: atUs,
  ...fields,
});

export const acknowledged = ({ id }: { id: number }): Settled => ({ id, outcome: 'acknowledged' });

export const postponed = (
  { id }: { id: number },
  nextAttemptAtUs: number,
  { counts = true, error = 'It answered 500.' } = {},
): Settled => ({ id, outcome: 'postponed', error, nextAttemptAtUs, counts });

/** The products of the due items, in order. */
export async function dueProducts(
  { sinks }: SinkStore,
  { sink = 'act', nowUs = atUs, limit = 99 } = {},
): Promise<string[]> {
  return (await sinks.due({ sink, nowUs, limit })).map(({ productId }) => productId);
}
