/** The sandbox's faults of bodies, sent to a receiver over HTTPS: stored and quarantined notifications. */
import { expect, it, onTestFinished } from 'vitest';
import type { Faults } from '../../src/sandbox/delivery/faults.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { collect } from '../helpers/deliveries.ts';
import { goodPair, startReceiver } from '../receiver/running-receiver.ts';

const count = 12;

/** Publishes products with these faults; `others` is the number of further subscriptions that get them. */
async function publish(faults: Partial<Faults>, others = 0) {
  const receiver = await startReceiver();
  const pathOf = (name: string) => `https://localhost:${receiver.port}/notifications/${name}`;
  const sandbox = await startSandbox({
    now: Date.now,
    endpoint: pathOf('first'),
    ...goodPair,
    trustedCaPems: [receiver.caPem],
    count: 0,
    faults,
  });
  onTestFinished(sandbox.close);
  for (let other = 1; other <= others; other += 1) {
    sandbox.addSubscription({ endpoint: pathOf(`other-${other}`), ...goodPair });
  }
  await sandbox.publishNow(count);
  const { store } = receiver;
  const expected = count * (1 + others);
  const requests = expected * (faults.contentChanged === 1 ? 2 : 1);
  await expect.poll(() => sandbox.totals().receivedOk).toBe(requests);
  const rows = await collect(store.find({ order: 'oldest' }));
  const originals = await Promise.all(rows.map(({ position }) => store.original(position)));
  const quarantined = await collect(store.quarantined({ released: false }));
  expect(sandbox.totals()).toMatchObject({ published: expected, delivered: expected, lost: 0 });
  return { sandbox, rows, quarantined, encodings: originals.map(({ encoding }) => encoding) };
}

it.each(['gzip', 'deflate', 'br'] as const)(
  'bodies compressed with %s are stored decompressed, with their encoding',
  async (encoding) => {
    const { sandbox, rows, quarantined, encodings } = await publish({ [`${encoding}Body`]: 1 });
    expect(encodings).toEqual(Array(count).fill(encoding));
    expect(rows.map(({ ackId }) => ackId).toSorted()).toEqual(
      sandbox
        .entries()
        .map(({ ackId }) => ackId)
        .toSorted(),
    );
    expect(quarantined).toEqual([]);
  },
);

it('a notification with the AckId of another subscription is stored', async () => {
  const { rows, quarantined } = await publish({ ackIdOfOther: 1 }, 1);
  expect(rows).toHaveLength(2 * count);
  const subscriptions = Map.groupBy(rows, ({ ackId }) => ackId).values();
  const shared = [...subscriptions].map((same) => same.map(({ subscription }) => subscription));
  expect(shared.map((same) => same.toSorted())).toEqual(Array(count).fill(['first', 'other-1']));
  expect(quarantined).toEqual([]);
});

it('other content under a known AckId is answered as a duplicate, and quarantined', async () => {
  const { rows, quarantined } = await publish({ contentChanged: 1, gzipBody: 0.5 });
  expect(rows).toHaveLength(count);
  expect(quarantined.map(({ reason }) => reason)).toEqual(Array(count).fill('ack-id-reused'));
});
