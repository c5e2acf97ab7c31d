/** `npm run attack -- services`: hostile answers of the servers to which the receiver connects. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { type Benchmark, dirOption, integer } from '../../bench/harness.ts';
import { openStore } from '../helpers/store.ts';
import {
  heapMegabytes,
  pushesPerSecond,
  renderHarms,
  renderPushes,
  whilePushing,
} from './while-pushing.ts';

const options = {
  seconds: integer('N', 'duration; comparisons begin after 30', {
    default: 90,
    min: 1,
    max: 3_600,
  }),
  dir: dirOption,
};

/** `once` answers the first data of a connection; `flood` is then repeated without end. */
interface HostileServer {
  greeting?: string;
  once: Buffer;
  flood?: Buffer;
}

const info = 'INFO {"max_payload":1048576}\r\n';

/** Servers of sinks. The bytes of PostgreSQL are messages of its protocol 3, as in `postgres-bytes.ts`. */
const servers = {
  gss: { once: Buffer.from('520000000800000007', 'hex') },
  'no-body': { once: Buffer.from('4400000004', 'hex') },
  'blocking-error': { once: Buffer.from('4500000004', 'hex') },
  'two-gigabytes': { once: Buffer.from('447fffffff', 'hex'), flood: Buffer.alloc(2 ** 20) },
  // CONNACK, then acknowledgements of unknown messages.
  mqtt: { once: Buffer.from('20020000', 'hex'), flood: filled('40020001', 2 ** 20) },
  nats: { greeting: info, once: Buffer.from('PONG\r\n'), flood: Buffer.from(info.repeat(30_000)) },
} satisfies Record<string, HostileServer>;

function filled(hex: string, bytes: number): Buffer {
  return Buffer.alloc(bytes, Buffer.from(hex, 'hex'));
}

type Count = Record<string, number>;

export const services: Benchmark<typeof options> = {
  command: 'npm run attack -- services',
  about: `Starts an \`earshot start\` with a heap of ${heapMegabytes} MB, whose servers are hostile: PostgreSQL, MQTT and NATS servers
of sinks end, block or fill their clients, and the catalogue answers with 63 MB of nested JSON. Meanwhile,
${pushesPerSecond} notifications a second are pushed; each must be answered.`,
  options,
  closing: 'Exit code: 0 no harm, 1 harm, 2 wrong usage.',
  async measure({ seconds }, context) {
    const connections: Count = {};
    const ports: Record<string, number> = {};
    for (const [name, server] of Object.entries(servers)) {
      ports[name] = await listen(hostile(server, () => increment(connections, name)));
    }
    const catalogue = await listen(largeAnswers(() => increment(connections, 'catalogue')));
    const environment = {
      EARSHOT_CATALOGUE_URL: `http://127.0.0.1:${catalogue}`,
      EARSHOT_RECONCILE: 'on',
    };
    context.progress.show('services');
    const options = { environment, config: configOf(ports), fill: register };
    const outcome = await whilePushing(context, options, () => delay(seconds * 1_000));
    return {
      report: { connections, ...outcome },
      text: [
        renderPushes(outcome, 'connections to servers', JSON.stringify(connections)),
        renderHarms(outcome.harms),
      ],
      hasFailed: outcome.harms.length > 0,
    };
  },
};

function increment(counts: Count, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1;
}

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // Its connections end with the receiver.
  server.unref();
  return (server.address() as AddressInfo).port;
}

function hostile({ greeting = '', once: first, flood }: HostileServer, onConnection: () => void) {
  return createServer((socket) => {
    onConnection();
    socket.on('error', () => undefined).write(greeting);
    socket.once('data', () => {
      socket.write(first);
      const fill = () => {
        while (flood !== undefined && !socket.destroyed && socket.write(flood));
      };
      socket.on('drain', fill);
      fill();
    });
  });
}

/** A catalogue whose answers are valid JSON of 63 MB. */
function largeAnswers(onRequest: () => void) {
  const part = `{"value":[${'[[[]]],'.repeat(9_000_000)}[]]}`;
  return createHttpServer((_, answer) => {
    onRequest();
    answer.on('error', () => undefined);
    answer.writeHead(200, { 'content-type': 'application/json' }).end(part);
  });
}

function configOf(ports: Record<string, number>): string {
  const databases = Object.keys(servers).filter((name) => name !== 'mqtt' && name !== 'nats');
  const postgres = databases.map((name) => [
    name,
    { postgres: { url: `postgres://earshot@127.0.0.1:${ports[name]}/gis` } },
  ]);
  const sinks = {
    ...Object.fromEntries(postgres),
    mqtt: { mqtt: { url: `mqtt://127.0.0.1:${ports.mqtt}`, topic: 'earshot' } },
    nats: { nats: { servers: [`nats://127.0.0.1:${ports.nats}`], subject: 'earshot' } },
  };
  return `export default ${JSON.stringify({ sinks })};\n`;
}

/** Writes a subscription that was registered a day ago, so that hours are compared. */
async function register(dataDir: string): Promise<void> {
  const atUs = (Date.now() - 86_400_000) * 1_000;
  const store = await openStore({ dataDir, nowUs: () => atUs });
  await store.administration.commit({
    save: {
      ...{ name: 'default', type: 'push', filter: "contains(Name,'S2')", events: ['created'] },
      ...{
        status: 'running',
        unfinished: false,
        earlierIds: [],
        origin: 'flags',
        changedByPerson: false,
        subscriptionId: null,
      },
      ...{ credentialsDigest: null, activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs },
      ...{ pausedSeenAtUs: null, reported: [] },
    },
  });
  await store.close();
}
