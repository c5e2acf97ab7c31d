/** Sinks of `earshot start` over kills under load: no notification is lost, few are delivered twice. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startHook } from '../features/sinks/hook-server.ts';
import { collect, notification } from '../helpers/deliveries.ts';
import {
  createClient,
  createReceiverContext,
  type ReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const concurrency = 8;
const startedDelivery = '"started delivery to sinks"';

/** Pushes as fast as receivers answer; a notification without status 200 is sent again, as by the catalogue. */
function createCatalogue({ ca }: ReceiverContext) {
  let next = 1;
  const open: number[] = [];
  const pushTo = async ({ port }: SpawnedReceiver, isEnough: () => boolean): Promise<void> => {
    const send = createClient({ port, ca, connections: 4 });
    const pushOn = async () => {
      while (!isEnough()) {
        const number = open.shift() ?? next++;
        const body = JSON.stringify(notification(number));
        const answer = await send('POST', '/notifications/all', body).catch(() => null);
        if (answer?.status !== 200) open.push(number);
        // The receiver was killed: another one gets the rest.
        if (answer === null) return;
      }
    };
    await Promise.all(Array.from({ length: 4 }, pushOn));
  };
  return { pushTo, created: () => next - 1, isAllStored: () => open.length === 0 };
}

async function killed({ child }: SpawnedReceiver): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

it('loses nothing over kills and restarts, and continues in another receiver', async () => {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const hook = await startHook();
  const sinks = { hook: { webhook: hook.url, from: 'start', concurrency } };
  writeFileSync(
    join(folder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
  const start = () => context.start({ EARSHOT_RECONCILE: 'off' });
  const catalogue = createCatalogue(context);
  /** Kills a receiver while it stores notifications and delivers others. */
  const killUnderLoad = async (receiver: SpawnedReceiver) => {
    const enough = hook.received.length + 100;
    const pushing = catalogue.pushTo(receiver, () => false);
    await expect.poll(() => hook.received.length, { interval: 5 }).toBeGreaterThan(enough);
    await killed(receiver);
    await pushing;
  };

  await killUnderLoad(await start());
  const [second, third] = [await start(), await start()];
  const both = [second, third];
  // Both receive; the later one reports the other one.
  expect(third.log()).toContain('another receiver uses this data directory');
  expect(third.log()).toContain(`process ${second.pid}, `);
  const working = () => both.filter(({ log }) => log().includes(startedDelivery));
  await expect.poll(() => working().length).toBe(1);
  const waiting = both.find((one) => !working().includes(one)) ?? third;
  // Both receive notifications; one of them delivers to the sinks.
  await killUnderLoad(waiting === second ? third : second);
  await expect.poll(waiting.log).toContain(startedDelivery);
  await killUnderLoad(waiting);
  const last = await start();
  await catalogue.pushTo(last, catalogue.isAllStored);

  const reader = openStoreReader(context.dataDir);
  const entries = await collect(reader.find({ order: 'oldest' }));
  await reader.close();
  expect(new Set(entries.map(({ productId }) => productId)).size).toBe(catalogue.created());
  const positions = entries.map(({ position }) => position);
  const delivered = () => [...new Set(hook.positions())].toSorted((a, b) => a - b);
  await expect.poll(delivered).toEqual(positions);
  expect(hook.received.length - positions.length).toBeLessThanOrEqual(3 * concurrency);

  const exit = once(last.child, 'exit');
  last.child.kill('SIGTERM');
  expect(await exit).toEqual([0, null]);
}, 60_000);
