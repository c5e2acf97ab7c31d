/** SIGKILL of earshot and an MQTT broker under load: no notification is lost, few are delivered twice. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connect } from 'mqtt';
import { expect, it, onTestFinished } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { hasMosquitto, startMosquitto } from '../features/sinks/mosquitto.ts';
import { mqttTarget } from '../features/sinks/mqtt-target.ts';
import { definition } from '../features/sinks/sink-definition.ts';
import { collect } from '../helpers/deliveries.ts';
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
const concurrency = 16;

/**
 * mosquitto acknowledges a message before it is on disk. Without a limit for unacknowledged messages, it sends each
 * message to the subscriber first, so that a kill loses no acknowledged message.
 */
const config = [
  'persistence true',
  'persistence_location FOLDER/',
  'max_inflight_messages 0',
  'max_queued_messages 0',
];

/** Subscribes with a session that outlives the broker. */
async function startReader(broker: Awaited<ReturnType<typeof startMosquitto>>) {
  const taken: Taken[] = [];
  let connections = 0;
  const client = connect(broker.url, {
    ...{ protocolVersion: 5, clientId: 'reader', clean: false, reconnectPeriod: 20 },
    properties: { sessionExpiryInterval: 3_600 },
  });
  onTestFinished(() => client.endAsync(true));
  client.on('connect', () => {
    connections += 1;
  });
  client.on('message', (_topic, payload) => {
    const { id, position, productId } = JSON.parse(payload.toString());
    taken.push({ id, position, productId });
  });
  await client.subscribeAsync('#', { qos: 1 });
  broker.save();
  await expect.poll(() => existsSync(join(broker.folder, 'mosquitto.db'))).toBe(true);
  return { taken, connections: () => connections };
}

it.skipIf(!hasMosquitto)(
  `publishes every notification despite ${kills} kills of earshot and the broker (needs mosquitto)`,
  async () => {
    const random = createRandom(20_261_127);
    const dataDir = join(temporaryDirectory(), 'data');
    const broker = await startMosquitto({ config });
    const { taken, connections } = await startReader(broker);
    let next = 1;
    const target = mqttTarget(broker.url);
    const sinks = JSON.stringify([definition(target, { concurrency, attemptsMax: 1 })]);
    const start = async (isLast = false) => {
      const from = isLast ? 'none' : `${next}`;
      const child = await startChild('sinks-kill-child.ts', [dataDir, from, sinks]);
      child.on('message', (made: number[]) => {
        next = Math.max(next, ...made.map((one) => one + 1));
      });
      return child;
    };

    let killsSeen = 0;
    let earshot = await start();
    for (let round = 0; round < kills; round += 1) {
      const [before, connected] = [taken.length, connections()];
      await expect.poll(() => taken.length, { interval: 5 }).toBeGreaterThan(before);
      // The random delay is the moment of the kill; the test waits for no condition here.
      await delay(random.integer(0, 300));
      killsSeen += 1;
      if (round % 2 === 0) {
        await broker.kill();
        await delay(random.integer(0, 300));
        await broker.start();
        await expect.poll(connections, { interval: 5 }).toBeGreaterThan(connected);
      } else {
        await killed(earshot);
        earshot = await start();
      }
    }
    await killed(earshot);
    killsSeen += 1;

    // The last process stores nothing new, and delivers the rest.
    const store = await openStore({ dataDir, nowUs: () => Date.now() * 1000 });
    onTestFinished(() => store.close());
    const all = (await collect(store.find({ order: 'oldest' }))).map(({ position }) => position);
    earshot = await start(true);
    const left = async () => {
      const [counts] = await store.sinks.counts();
      const cursor = await store.cursor('sink:sink');
      return { cursor, waiting: counts?.waiting, dead: counts?.dead };
    };
    await expect
      .poll(left, { timeout: 60_000 })
      .toEqual({ cursor: all.at(-1), waiting: 0, dead: 0 });
    await killed(earshot);

    await expect.poll(() => missing(all, taken)).toEqual([]);
    expect(all.length).toBeGreaterThan(300);
    const words = `${taken.length} messages over ${killsSeen} kills, ${doubles(taken)} of them twice`;
    expect(doubles(taken), words).toBeLessThanOrEqual(killsSeen * concurrency);
    expectOrder(taken);
  },
  180_000,
);
