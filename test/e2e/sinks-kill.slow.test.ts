/**
 * SIGKILL of receivers and of a NATS server under load. A web service refuses some webhooks the first time. No
 * notification is lost, few are delivered twice, and the next receiver continues.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { startHook } from '../features/sinks/hook-server.ts';
import { hasNats, startNats } from '../features/sinks/nats-server.ts';
import { collect, notification } from '../helpers/deliveries.ts';
import {
  createClient,
  createReceiverContext,
  type ReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { openStoreReader } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';

const kills = times(4, 18);
const concurrency = { webhook: 8, command: 4 };
/** Appends its input line to the file in its argument; refuses positions that end with 6. */
const act = `IFS= read -r line || exit 75
case "$line" in *'"position":'*6,'"subscription"'*) exit 1;; esac
printf '%s\\n' "$line" >> "$0"`;

/** A document as a sink received it. */
interface Taken {
  id: string;
  position: number;
}

function missing(positions: readonly number[], taken: readonly Taken[]): number[] {
  const known = new Set(taken.map(({ position }) => position));
  return positions.filter((position) => !known.has(position));
}

/** Returns the number of repeated deliveries. */
const doubles = (taken: readonly Taken[]) => taken.length - new Set(taken.map(({ id }) => id)).size;

/** Pushes as fast as receivers answer; a notification without status 200 is sent again, as by the catalogue. */
function createCatalogue({ ca }: ReceiverContext) {
  let next = 1;
  const open: number[] = [];
  const pushTo = async ({ port }: SpawnedReceiver, isEnough: () => boolean): Promise<void> => {
    const send = createClient({ port, ca, connections: 4 });
    const pushOn = async () => {
      while (!isEnough()) {
        const number = open.shift() ?? next++;
        // Few products: some wait for their turn.
        const ProductId = `product-${number % 50}`;
        const SubscriptionEvent = number % 4 === 0 ? 'modified' : 'created';
        const body = JSON.stringify(notification(number, { ProductId, SubscriptionEvent }));
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

/** A web service that refuses some webhooks, or fails, the first time. */
async function startService() {
  const taken: Taken[] = [];
  const failed = new Set<string>();
  const { url } = await startHook({
    answer: ({ data }, response) => {
      const { id, position } = data;
      const status = position % 23 === 0 ? 400 : 500;
      if (!failed.has(id) && (position % 23 === 0 || position % 13 === 0)) {
        failed.add(id);
        return void response.writeHead(status).end();
      }
      return void taken.push(data);
    },
  });
  return { url, taken };
}

it.skipIf(!hasNats)(
  `delivers every notification despite ${kills} kills of receivers and a sink (needs nats-server)`,
  async () => {
    const random = createRandom(20_261_121);
    const folder = temporaryDirectory();
    const context = await createReceiverContext(folder);
    const commandFile = join(folder, 'by-command');
    const nats = await startNats();
    await nats.addStream(['earshot.products']);
    const service = await startService();
    const sinks = {
      nats: {
        nats: { servers: [nats.server], subject: 'earshot.products' },
        ...{ from: 'start', concurrency: 32, attempts: 1 },
      },
      webhook: { webhook: service.url, from: 'start', concurrency: concurrency.webhook },
      command: {
        command: ['sh', '-c', act, commandFile],
        ...{ from: 'start', concurrency: concurrency.command, attempts: 1, events: ['modified'] },
      },
    };
    const config = `export default ${JSON.stringify({ sinks })};\n`;
    writeFileSync(join(folder, 'earshot.config.ts'), config);
    const start = () => context.start({ EARSHOT_RECONCILE: 'off', EARSHOT_INDEX: 'off' });
    const catalogue = createCatalogue(context);

    let receiver = await start();
    let killed = 0;
    for (let round = 0; round < kills; round += 1) {
      const enough = service.taken.length + 50;
      let isEnough = false;
      const pushing = catalogue.pushTo(receiver, () => isEnough);
      await expect.poll(() => service.taken.length, { interval: 5 }).toBeGreaterThan(enough);
      if (round % 2 === 0) {
        await nats.kill();
        await delay(random.integer(0, 300));
        await nats.start();
        isEnough = true;
      } else {
        // The random delay is the moment of the kill; the test waits for no condition here.
        await delay(random.integer(0, 300));
        await receiver.end('SIGKILL');
        killed += 1;
        receiver = await start();
      }
      await pushing;
    }
    await catalogue.pushTo(receiver, catalogue.isAllStored);

    const reader = openStoreReader(context.dataDir);
    const rows = await collect(reader.find({ order: 'oldest' }));
    const all = rows.map(({ position }) => position);
    expect(rows).toHaveLength(catalogue.created());
    // Each round delivers more than 50.
    expect(all.length).toBeGreaterThan(50 * kills);
    const modified = rows.filter(({ event }) => event === 'modified').map((row) => row.position);
    const refused = modified.filter((position) => position % 10 === 6);
    expect(refused.length).toBeGreaterThan(5);
    const left = async () => {
      const cursors = ['nats', 'webhook', 'command'].map((sink) => reader.cursor(`sink:${sink}`));
      const counts = await reader.sinks.counts();
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
    const letters = await collect(reader.sinks.items({ sink: 'command', state: 'dead' }));
    await reader.close();
    expect(await receiver.end('SIGTERM')).toEqual([0, null]);

    const byNats = (await nats.messages()).map(({ data }): Taken => data);
    const lines = existsSync(commandFile) ? readFileSync(commandFile, 'utf8').trim() : '';
    const byCommand = lines.split('\n').map((line): Taken => JSON.parse(line));
    expect(missing(all, service.taken)).toEqual([]);
    expect(missing(all, byNats)).toEqual([]);
    expect(missing(modified, byCommand)).toEqual(refused);
    expect(letters.map(({ position }) => position).toReversed()).toEqual(refused);
    // NATS removes duplicates; the others may get deliveries in flight again.
    expect(doubles(byNats)).toBe(0);
    expect(doubles(service.taken)).toBeLessThanOrEqual(killed * concurrency.webhook);
    expect(doubles(byCommand)).toBeLessThanOrEqual(killed * concurrency.command);
  },
  180_000,
);
