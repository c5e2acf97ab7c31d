/**
 * SIGKILL of earshot, a NATS server and a web service under load. The web service refuses some webhooks the first
 * time. No notification is lost, few are delivered twice.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { hasNats, startNats } from '../features/sinks/nats-server.ts';
import { definition } from '../features/sinks/sink-definition.ts';
import { collect } from '../helpers/deliveries.ts';
import { freePort } from '../helpers/free-ports.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import {
  doubles,
  expectOrder,
  killed,
  missing,
  startChild,
  type Taken,
} from './sinks-kill-context.ts';

const kills = times(6, 18);
const concurrency = { webhook: 8, command: 4 };
/** Appends its input line to the file in its argument; refuses positions that end with 6. */
const act = `IFS= read -r line || exit 75
case "$line" in *'"position":'*6,'"subscription"'*) exit 1;; esac
printf '%s\\n' "$line" >> "$0"`;

function sinksFor({ server, url, file }: { server: string; url: string; file: string }) {
  const fixed = { subject: 'earshot.products', credentials: { kind: 'none' }, ca: null } as const;
  return [
    definition(
      { kind: 'nats', servers: [server], ...fixed },
      { name: 'nats', concurrency: 32, attemptsMax: 1 },
    ),
    definition(
      { kind: 'webhook', url, secret: null, ca: null },
      { name: 'webhook', concurrency: concurrency.webhook },
    ),
    definition(
      { kind: 'command', command: ['sh', '-c', act, file] },
      { name: 'command', concurrency: concurrency.command, attemptsMax: 1, events: ['modified'] },
    ),
  ];
}

function takenIn(file: string): Taken[] {
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

it.skipIf(!hasNats)(
  `delivers every notification despite ${kills} kills of earshot and the sinks (needs nats-server)`,
  async () => {
    const random = createRandom(20_261_121);
    const folder = temporaryDirectory();
    const dataDir = join(folder, 'data');
    const [file, commandFile] = [join(folder, 'by-hook'), join(folder, 'by-command')];
    const nats = await startNats();
    await nats.addStream(['earshot.products']);
    const port = await freePort();
    const startHook = () => startChild('sinks-hook-child.ts', [`${port}`, file]);
    let hook = await startHook();
    let next = 1;
    const start = async (isLast = false) => {
      const url = `http://127.0.0.1:${port}/`;
      const from = isLast ? 'none' : `${next}`;
      const sinks = JSON.stringify(sinksFor({ server: nats.server, url, file: commandFile }));
      const child = await startChild('sinks-kill-child.ts', [dataDir, from, sinks]);
      child.on('message', (made: number[]) => {
        next = Math.max(next, ...made.map((one) => one + 1));
      });
      return child;
    };
    const hooked = () => takenIn(file);

    const killsOf = { earshot: 0, hook: 0 };
    let earshot = await start();
    for (let round = 0; round < kills; round += 1) {
      const before = hooked().length;
      await expect.poll(() => hooked().length, { interval: 5 }).toBeGreaterThan(before);
      // The random delay is the moment of the kill; the test waits for no condition here.
      await delay(random.integer(0, 300));
      if (round % 3 === 0) {
        await killed(hook);
        killsOf.hook += 1;
        hook = await startHook();
      } else if (round % 3 === 1) {
        await nats.kill();
        await delay(random.integer(0, 300));
        await nats.start();
      } else {
        await killed(earshot);
        killsOf.earshot += 1;
        earshot = await start();
      }
    }
    await killed(earshot);
    killsOf.earshot += 1;

    // The last process stores nothing new, and delivers the rest.
    const store = await openStore({ dataDir, nowUs: () => Date.now() * 1000 });
    onTestFinished(() => store.close());
    const rows = await collect(store.find({ order: 'oldest' }));
    const all = rows.map(({ position }) => position);
    const modified = rows.filter(({ event }) => event === 'modified').map((row) => row.position);
    const refused = modified.filter((position) => position % 10 === 6);
    earshot = await start(true);
    const left = async () => {
      const cursors = ['nats', 'webhook', 'command'].map((sink) => store.cursor(`sink:${sink}`));
      const counts = await store.sinks.counts();
      return {
        cursors: await Promise.all(cursors),
        waiting: counts.reduce((sum, { waiting }) => sum + waiting, 0),
        dead: counts.map(({ sink, dead }) => `${sink} ${dead}`),
      };
    };
    const last = all.at(-1);
    const dead = [`command ${refused.length}`, 'nats 0', 'webhook 0'];
    const none = { cursors: [last, last, last], waiting: 0, dead };
    await expect.poll(left, { timeout: 60_000 }).toEqual(none);
    await killed(earshot);
    killsOf.earshot += 1;

    const byHook = hooked();
    const byNats = (await nats.messages()).map(({ data }): Taken => data);
    const byCommand = takenIn(commandFile);
    expect(all.length).toBeGreaterThan(300);
    expect(missing(all, byHook)).toEqual([]);
    expect(missing(all, byNats)).toEqual([]);
    expect(refused.length).toBeGreaterThan(10);
    expect(missing(modified, byCommand)).toEqual(refused);
    const letters = await collect(store.sinks.items({ sink: 'command', state: 'dead' }));
    expect(letters.map(({ position }) => position).toReversed()).toEqual(refused);
    // NATS removes duplicates; the others may get deliveries in flight again.
    expect(doubles(byNats)).toBe(0);
    const killsSeen = killsOf.earshot + killsOf.hook;
    const twice = { webhook: doubles(byHook), command: doubles(byCommand) };
    const words = `${byHook.length} webhooks over ${killsSeen} kills, ${twice.webhook} of them twice`;
    expect(twice.webhook, words).toBeLessThanOrEqual(killsSeen * concurrency.webhook);
    expect(twice.command).toBeLessThanOrEqual(killsOf.earshot * concurrency.command);
    for (const taken of [byNats, byHook, byCommand]) expectOrder(taken);
  },
  180_000,
);
