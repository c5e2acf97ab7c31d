/** Memory of a long queue in the sandbox. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { ackAnswer, productIdsOf, startPull } from './set-up.ts';

it('a queue of 50,000 entries takes little memory', { timeout: 120_000 }, async () => {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  const usedBytes = () => {
    collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  // Small holdings and few events, so that only the queue and the record grow.
  const { read, ack, sandbox, state } = await startPull({ holdingsMax: 10, eventsMax: 10 });
  const before = usedBytes();
  expect(await sandbox.publishNow(50_000)).toBe(50_000);
  expect(state().length).toBe(50_000);
  // A body takes about 5 kB; the newest 4,000 records are unpacked, about 10 kB each.
  expect((usedBytes() - before) / 50_000).toBeLessThan(3_000);
  const entries = sandbox.entries();
  expect((await ack(entries[29_999]?.ackId ?? '')).json).toEqual(ackAnswer(30_000, 20_000));
  const page = await read(20);
  expect(productIdsOf(page)).toEqual(
    entries.slice(30_000, 30_020).map(({ productId }) => productId),
  );
  expect(page.json[7].value.Name).toBe(entries[30_007]?.productName);
});
