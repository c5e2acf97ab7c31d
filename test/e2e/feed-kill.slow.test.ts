/**
 * The consumers of the feed in `examples`, while the receiver is killed under load and restarted. Each continues without
 * a gap, and no notification is sent again after it was processed.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { collect, notification } from '../helpers/deliveries.ts';
import { freePort } from '../helpers/free-ports.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed, times } from '../helpers/thorough.ts';

const kills = times(3, 15);
const examples = join(import.meta.dirname, '../../examples');
const programs = {
  TypeScript: [process.execPath, join(examples, 'typescript/feed.ts')],
  Python: ['/usr/bin/python3', join(examples, 'python/feed.py')],
};

/** Starts a consumer that has processed nothing yet; `lines` are those that it has printed. */
function startConsumer([program = '', file = '']: readonly string[], origin: string) {
  const child = spawn(program, [file, origin, '0'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const ended = once(child, 'exit');
  const out = printedBy(child.stdout);
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return { lines: () => out().split('\n').slice(0, -1) };
}

it.skipIf(!installed('/usr/bin/python3'))(
  'consumers get the past, then each new product once, over kills of the receiver under load',
  async () => {
    const context = await createReceiverContext(temporaryDirectory());
    const port = await freePort();
    const start = () => context.start({ EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` });
    let receiver = await start();
    let next = 1;
    const open: number[] = [];
    /** Pushes notifications until the receiver is killed; those without an answer are sent again. */
    const push = async (count: number) => {
      const send = createClient({ port: receiver.port, ca: context.ca, connections: 4 });
      const end = next + count;
      const pushOn = async () => {
        while (open.length > 0 || next < end) {
          const number = open.shift() ?? next++;
          const SubscriptionEvent = number % 3 === 0 ? 'modified' : 'created';
          const body = JSON.stringify(notification(number, { SubscriptionEvent }));
          const answer = await send('POST', '/notifications/all', body).catch(() => null);
          if (answer?.status !== 200) open.push(number);
          if (answer === null) return;
        }
      };
      await Promise.all(Array.from({ length: 4 }, pushOn));
    };
    await push(150);
    const consumers = Object.entries(programs).map(([name, program]) => {
      return { name, ...startConsumer(program, `http://127.0.0.1:${port}`) };
    });
    for (const { lines } of consumers) await expect.poll(() => lines().length).toBe(100);
    for (let round = 0; round < kills; round += 1) {
      const read = consumers.map(({ lines }) => lines().length);
      const pushing = push(100_000);
      // Killed while each consumer receives new products.
      for (const [i, { lines }] of consumers.entries()) {
        await expect.poll(() => lines().length, { interval: 1 }).toBeGreaterThan(read[i] ?? 0);
      }
      await Promise.all([receiver.end('SIGKILL'), pushing]);
      receiver = await start();
    }
    await push(0);

    const store = openStoreReader(context.dataDir);
    const rows = await collect(store.find({ order: 'oldest', events: ['created'] }));
    await store.close();
    const expected = rows.map(({ position, productName }) => `${position} ${productName}`);
    for (const { name, lines } of consumers) {
      await expect
        .poll(() => lines().length, { message: name })
        .toBeGreaterThanOrEqual(rows.length);
      expect(lines(), name).toEqual(expected);
    }
    expect(await receiver.end()).toEqual([0, null]);
  },
);
