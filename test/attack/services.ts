/** `npm run attack -- services`: hostile answers of the servers to which the receiver connects. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { alignTable, figure, megabytes } from '../../bench/figures.ts';
import { type Benchmark, dirOption, integer } from '../../bench/harness.ts';
import { openStore } from '../../src/store/store.ts';
import { measured, startSteadyPushes } from './steady-pushes.ts';
import { startTarget, takeEvidence, watchUse } from './target.ts';

const options = {
  seconds: integer('N', 'duration; comparisons begin after 30', {
    default: 90,
    min: 1,
    max: 3_600,
  }),
  dir: dirOption,
};

const heapMegabytes = 512;
const perSecond = 20;

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
${perSecond} notifications a second are pushed; each must be answered.`,
  options,
  closing: 'Exit code: 0 no harm, 1 harm, 2 wrong usage.',
  async measure({ seconds }, { cleanup, progress, folder: parentFolder }) {
    const connections: Count = {};
    const ports: Record<string, number> = {};
    for (const [name, server] of Object.entries(servers)) {
      ports[name] = await listen(hostile(server, () => increment(connections, name)));
    }
    const catalogue = await listen(largeAnswers(() => increment(connections, 'catalogue')));
    const environment = {
      NODE_OPTIONS: `--max-old-space-size=${heapMegabytes}`,
      EARSHOT_CATALOGUE_URL: `http://127.0.0.1:${catalogue}`,
      EARSHOT_RECONCILE: 'on',
    };
    const [config, fill] = [configOf(ports), register];
    const given = { cleanup, parentFolder, isPlain: true, environment, config, fill };
    const target = await startTarget(given);
    const watched = watchUse(target.processId);
    const pushing = startSteadyPushes(target, { kind: 'kept', perSecond });
    progress.show('services');
    await delay(seconds * 1_000);
    const { pushes, acknowledged, harms: delays } = await measured(pushing);
    const memory = watched.stop();
    const evidence = await takeEvidence(target, acknowledged, { seconds });
    const harms = [...delays, ...evidence.harms];
    return {
      report: { connections, pushes, memory, evidence, harms },
      text: [
        alignTable([
          ['pushes', 'p50 ms', 'p99 ms', 'max ms', 'max MB', 'connections to servers'],
          [
            ...[figure(pushes.answered), figure(pushes.p50Ms, 1), figure(pushes.p99Ms, 1)],
            ...[figure(pushes.maxMs, 1), megabytes(memory.peakBytes), JSON.stringify(connections)],
          ],
        ]),
        harms.length === 0
          ? 'No harm.'
          : `${harms.length} harms:\n${harms.slice(0, 30).join('\n')}`,
      ],
      hasFailed: harms.length > 0,
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
      ...{ status: 'running', unfinished: false, heldBy: null, subscriptionId: null },
      ...{ credentialsDigest: null, activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: atUs },
      ...{ pausedSeenAtUs: null, reported: null },
    },
  });
  await store.close();
}
