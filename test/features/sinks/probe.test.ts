/** The item with which a sink that is down is probed. */
import { setImmediate } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createDelivery } from '../../../src/features/sinks/delivery.ts';
import type { SinkContext } from '../../../src/features/sinks/target.ts';
import type { SinkItem } from '../../../src/features/sinks/terms.ts';
import { definition } from './sink-definition.ts';

const hourUs = 3_600_000_000;

/** Takes down a sink with these items, always in this order. Returns the attempted positions. */
async function probed(...items: Pick<SinkItem, 'id' | 'dueAtUs' | 'error'>[]) {
  const attempted: number[] = [];
  let nowUs = 10 * hourUs;
  const context = {
    sinks: {
      due: async ({ limit }: { limit: number }) =>
        items.slice(0, limit).map((one) => {
          const { id } = one;
          return { ...one, position: id, productId: `product-${id}`, replayId: null, attempts: 0 };
        }),
      items: async function* () {
        yield* items;
      },
      nextDueAtUs: async () => 0,
      settle: async () => undefined,
    },
    log: {
      find: async function* ({ afterPosition = 0 }) {
        yield { position: afterPosition + 1, receivedAtUs: 0, notificationDateUs: null };
      },
      body: async () => Buffer.from('{}'),
    },
    nowUs: () => nowUs,
    pause: async () => undefined,
    random: () => 0.5,
    logger: Object.fromEntries(['debug', 'info', 'warn', 'error'].map((l) => [l, () => undefined])),
  } as unknown as SinkContext;
  const delivery = createDelivery({
    definition: definition({ kind: 'command', command: ['simulated'] }, { concurrency: 1 }),
    context,
    target: {
      deliver: async ({ position }) => {
        attempted.push(position);
        return { kind: 'misconfigured', reason: 'nobody listens' };
      },
      close: async () => undefined,
    },
    onFinished: () => undefined,
    signal: new AbortController().signal,
  });
  const round = async () => {
    await delivery.startDue();
    await delivery.idle();
    await setImmediate();
    nowUs += hourUs;
  };
  await round();
  await round();
  return attempted;
}

const item = (id: number, dueAtUs: number, error: string | null) => ({ id, dueAtUs, error });

it('the probe uses an item that has not failed yet', async () => {
  expect(await probed(item(1, 5, 'no'), item(2, 1, 'no'), item(3, 9, null))).toEqual([1, 3]);
});

it('the probe uses the item that has been due longest when all have failed', async () => {
  expect(await probed(item(1, 5, 'no'), item(2, 7, 'no'), item(3, 1, 'no'))).toEqual([1, 3]);
});
