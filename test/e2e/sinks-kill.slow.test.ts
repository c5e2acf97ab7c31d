/**
 * SIGKILL of receivers and of a NATS server under load. Web services refuse some webhooks and batches the first time. No
 * notification is lost, at most those in flight are delivered twice, and the next receiver continues.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import {
  createDatabase,
  hasPostgres,
  query,
  useServer,
} from '../features/shared-log/shared-log-context.ts';
import { type HookAnswer, startHook } from '../features/sinks/hook-server.ts';
import { hasNats, startNats } from '../features/sinks/nats-server.ts';
import { startBroker } from '../features/sinks/simulated-broker.ts';
import { startStacServer } from '../features/sinks/stac-server.ts';
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
const concurrency = { webhook: 8, command: 4, batch: 2, catalogue: 4, broker: 8 };
const batch = { items: 20, seconds: 1 };
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

/** A web service that refuses some requests, or fails, the first time. */
async function startService(read: (body: string) => Taken[]) {
  const taken: Taken[] = [];
  const failed = new Set<string>();
  const answer: HookAnswer = ({ body }, response) => {
    const items = read(body);
    const fault = items.find(
      ({ id, position }) => !failed.has(id) && (position % 23 === 0 || position % 13 === 0),
    );
    if (fault === undefined) return void taken.push(...items);
    failed.add(fault.id);
    return void response.writeHead(fault.position % 23 === 0 ? 400 : 500).end();
  };
  const { url } = await startHook({ answer });
  return { url, taken };
}

/** CloudEvents have no position, but their id has. */
const readEvents = (body: string): Taken[] =>
  JSON.parse(body).map(({ id }: { id: string }) => ({ id, position: Number(id.split('_')[1]) }));

const isReady = hasNats && hasPostgres;
const postgres = isReady ? useServer({ fsync: 'off' }) : null;

it.skipIf(!isReady)(
  `delivers every notification despite ${kills} kills of receivers and a sink (needs nats-server, postgresql)`,
  async () => {
    const random = createRandom(20_261_121);
    const folder = temporaryDirectory();
    const context = await createReceiverContext(folder);
    const commandFile = join(folder, 'by-command');
    const nats = await startNats();
    await nats.addStream(['earshot.products']);
    const service = await startService((body) => [JSON.parse(body).data]);
    const batches = await startService(readEvents);
    const catalogueApi = await startStacServer();
    const broker = await startBroker();
    if (postgres === null) throw new Error('The test is skipped.');
    const gis = await createDatabase(postgres());
    const sinks = {
      nats: {
        nats: { servers: [nats.server], subject: 'earshot.products' },
        ...{ from: 'start', concurrency: 32, attempts: 1 },
      },
      webhook: { webhook: service.url, from: 'start', concurrency: concurrency.webhook },
      batch: {
        ...{ webhook: batches.url, format: 'cloudevents', batch },
        ...{ from: 'start', concurrency: concurrency.batch },
      },
      gis: { postgres: { url: gis, notifications: 'events' }, from: 'start' },
      broker: { mqtt: { url: broker.url }, from: 'start', concurrency: concurrency.broker },
      catalogue: { stac: catalogueApi.url, from: 'start', concurrency: concurrency.catalogue },
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
    const names = Object.keys(sinks);
    const left = async () => {
      const cursors = names.map((sink) => reader.cursor(`sink:${sink}`));
      const counts = await reader.sinks.counts();
      return {
        cursors: await Promise.all(cursors),
        waiting: counts.reduce((sum, { waiting }) => sum + waiting, 0),
        dead: counts.map(({ sink, dead }) => `${sink} ${dead}`),
      };
    };
    const last = all.at(-1);
    const dead = [
      'batch 0',
      'broker 0',
      'catalogue 0',
      `command ${refused.length}`,
      'gis 0',
      'nats 0',
      'webhook 0',
    ];
    const none = { cursors: names.map(() => last), waiting: 0, dead };
    await expect.poll(left, { timeout: 60_000 }).toEqual(none);
    const letters = await collect(reader.sinks.items({ sink: 'command', state: 'dead' }));
    await reader.close();
    expect(await receiver.end('SIGTERM')).toEqual([0, null]);

    const byNats = (await nats.messages()).map(({ data }): Taken => data);
    const lines = existsSync(commandFile) ? readFileSync(commandFile, 'utf8').trim() : '';
    const byCommand = lines.split('\n').map((line): Taken => JSON.parse(line));
    expect(missing(all, service.taken)).toEqual([]);
    expect(missing(all, byNats)).toEqual([]);
    expect(missing(all, batches.taken)).toEqual([]);
    const byGis = await query(gis, 'SELECT position::int FROM events ORDER BY 1');
    expect(byGis.map(({ position }) => position)).toEqual(all);
    const byBroker = broker.published.map(({ payload }): Taken => JSON.parse(String(payload)));
    expect(missing(all, byBroker)).toEqual([]);
    expect(doubles(byBroker)).toBeLessThanOrEqual(killed * concurrency.broker);
    expect(missing(modified, byCommand)).toEqual(refused);
    expect(letters.map(({ position }) => position).toReversed()).toEqual(refused);
    // NATS removes duplicates; the others may get deliveries in flight again.
    expect(doubles(byNats)).toBe(0);
    expect(doubles(service.taken)).toBeLessThanOrEqual(killed * concurrency.webhook);
    expect(doubles(byCommand)).toBeLessThanOrEqual(killed * concurrency.command);
    const inBatches = killed * concurrency.batch * batch.items;
    expect(doubles(batches.taken)).toBeLessThanOrEqual(inBatches);
    // Each notification is one change, and each repetition replaces the item.
    const changes = catalogueApi.answered.filter(({ status }) => status === 200 || status === 201);
    const repeated =
      changes.filter(({ request }) => request.includes('/items')).length - all.length;
    expect(catalogueApi.items()).toHaveLength(50);
    expect(repeated).toBeGreaterThanOrEqual(0);
    expect(repeated).toBeLessThanOrEqual(killed * concurrency.catalogue);
  },
  180_000,
);
