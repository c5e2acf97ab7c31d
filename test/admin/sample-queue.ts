/** The state of a queue, as its reader stores it. */
import type { QueueState } from '../../src/admin/pull-queue.ts';

/** Time of the last answer, by default. */
export const readAtUs = Date.UTC(2026, 4, 1, 12) * 1_000;

/** Returns a queue that was just read to its end. */
export const queueState = (fields: Partial<QueueState> = {}): QueueState => ({
  ...{ subscription: 'alps', subscriptionId: 'id-1', length: 0, lengthMax: 100_000 },
  ...{ oldestAtUs: null, emptiedAtUs: readAtUs, readAtUs },
  ...{ entries: 0, failure: null, failingSinceUs: null },
  ...fields,
});
