/** Benchmark of body compression: its cost at intake, and the disk space it saves. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { createRandom, type Random } from '../src/sandbox/clock.ts';
import { createNotificationBuilder } from '../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { compactLog } from '../src/store/bodies/compact-log.ts';
import { openStore } from '../test/helpers/store.ts';
import {
  alignTable,
  figure,
  hasFaults,
  median,
  renderMachine,
  renderTargets,
  type Spread,
  target,
} from './figures.ts';
import {
  type BenchContext,
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  runBenchmark,
} from './harness.ts';
import {
  type BenchSetting,
  createSetting,
  faultsOf,
  loadOptions,
  measureInTurn,
  measureServer,
  type Round,
  type RunFigures,
  readDatabase,
  runsOf,
  speedRatios,
} from './measure.ts';
import { templateCounts } from './notifications.ts';
import { databaseFile } from './servers.ts';

const notificationsRange = { min: 100, max: 10_000_000 };

const options = {
  ...loadOptions,
  notifications: integer('N', 'notifications of each kind, at full speed', {
    ...{ default: 50_000, ...notificationsRange },
  }),
  singles: integer('N', 'notifications of each kind, one at a time', {
    default: 5_000,
    ...notificationsRange,
  }),
  'no-speed': flag('measure only disk space'),
  dir: dirOption,
  check: flag('exit 1 if a target is missed'),
};

/** Targets: minimum speed with compression, relative to without; maximum size, relative to raw bodies. */
const speedMin = 0.85;
const shareMax = 0.2;

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(bodies, argv, io);
}

const bodies: Benchmark<typeof options> = {
  command: 'npm run bench:bodies --',
  about: `Measures the cost and the savings of compressing the bodies of the log:
  speed  intake over HTTPS, with uncompressed and compressed bodies in turn
  disk   bytes of earshot.db per notification: stored at full speed, stored one at a time, and both
         after compaction; for generated products, and for the real records in ../shared/fixtures
         if available`,
  options,
  closing: `Exit code: 0 done, 1 failed, or (--check) a target was missed; 2 invalid usage.

Example:
  npm run bench:bodies -- --no-speed --notifications 10000`,
  async measure(chosen, context) {
    const speed = chosen['no-speed']
      ? null
      : await measureSpeed(await createSetting(chosen, context));
    const sizes: BodySizes[] = [];
    for (const kind of bodyKinds) {
      if (kind === 'real' && !existsSync(recordsFile)) continue;
      sizes.push(await measureSizes(kind, 'full speed', chosen.notifications, context));
      sizes.push(await measureSizes(kind, 'one at a time', chosen.singles, context));
    }
    const faults = runsOf(speed?.rounds ?? [], bodyStates).flatMap(faultsOf);
    const ratio = speed?.ratio?.median ?? null;
    const targets = [
      target('intake, compressed / uncompressed', ratio, { min: speedMin }),
      ...sizes.map(({ kind, arrival, rawBytes, compacted }) => {
        const name = `log / raw bodies, ${kind}, ${arrival}, compacted`;
        return target(name, compacted.file / rawBytes, { max: shareMax });
      }),
    ];
    const { machine, command } = context.about;
    return {
      report: { ...context.about, speed, sizes, targets, faults },
      text: [
        renderMachine(machine),
        ...(speed === null ? [] : [renderSpeed(speed)]),
        renderSizes(sizes),
        renderTargets(targets),
        ...(faults.length === 0 ? [] : [['FAILED', ...faults].join('\n  ')]),
        `Repeat: ${command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

/** Both states use the same program, with the product index on. */
const bodyStates = ['uncompressed', 'compressed'] as const;
type BodyState = (typeof bodyStates)[number];

interface BodySpeed {
  readonly rounds: readonly Round<BodyState>[];
  /** Requests per second, compressed / uncompressed, per round. */
  readonly ratio: Spread | null;
}

async function measureSpeed(setting: BenchSetting): Promise<BodySpeed> {
  // As many distinct bodies as a receiver gets in a minute.
  const distinct = { ...setting, templateCount: templateCounts.distinct };
  const uncompressed = { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'uncompressed.ts')}` };
  const rounds = await measureInTurn(setting, 'speed', bodyStates, async (state, dataFolder) => {
    const environment = state === 'compressed' ? {} : uncompressed;
    const figures = await measureServer(distinct, 'earshot', dataFolder, { environment });
    assertState(state, dataFolder);
    return figures;
  });
  return { rounds, ratio: speedRatios(rounds, 'compressed', 'uncompressed') };
}

/** Throws if the stored bodies do not have the state to measure. */
function assertState(state: BodyState, dataFolder: string): void {
  const encodings = readDatabase(databaseFile(dataFolder), (database) =>
    database.prepare('SELECT DISTINCT encoding FROM body').pluck().all().join(),
  );
  if ((encodings === 'identity') !== (state === 'uncompressed')) {
    throw new Error(`bodies should be ${state}, but their encodings are ${encodings}`);
  }
}

function renderSpeed({ rounds, ratio }: BodySpeed): string {
  const rows = bodyStates.map((state) => {
    const runs = runsOf(rounds, [state]);
    return [
      state,
      figure(median(runs.map((one) => one.requestsPerSecond))),
      figure(median(runs.map((one) => one.p50Ms)), 1),
      figure(median(runs.map((one) => one.p99Ms)), 1),
      figure(median(runs.map(cpuUs))),
      figure(median(runs.map((one) => one.diskBytesPerRow))),
    ];
  });
  const title = ['bodies', 'requests/s', 'p50 ms', 'p99 ms', 'processor µs', 'bytes/row'];
  const each = rounds.map((round) => {
    const one = speedRatios([round], 'compressed', 'uncompressed');
    return figure(one?.median ?? null, 2);
  });
  const spread = `${figure(ratio?.median ?? null, 2)} (rounds: ${each.join(' ')})`;
  return `${alignTable([title, ...rows])}\nSpeed, compressed / uncompressed: ${spread}`;
}

/** Processor time of all threads of the receiver per request, µs; more reliable than the rate on a shared machine. */
function cpuUs({ serverCores, requestsPerSecond }: RunFigures): number | null {
  return serverCores === null ? null : (serverCores * 1e6) / requestsPerSecond;
}

const bodyKinds = ['generated', 'real'] as const;
type BodyKind = (typeof bodyKinds)[number];

const recordsFile = new URL('../../shared/fixtures/products.jsonl', import.meta.url);

const firstMs = Date.UTC(2026, 6, 1);
const intervalMs = 2_700;
/** Differs from the seed of the dictionary's training. */
const seed = 99;

/**
 * Generates distinct bodies like the catalogue's, in one subscription. Real records, which are few, are repeated
 * with new ids.
 */
function* bodiesOf(kind: BodyKind, count: number): Generator<Buffer> {
  const random = createRandom(seed);
  const generator = createProductGenerator({ seed });
  const nextReal = kind === 'real' ? realProducts(random) : null;
  const builder = createNotificationBuilder({ subscriptionId: random.uuid(), random });
  for (let index = 0; index < count; index += 1) {
    const atMs = firstMs + index * intervalMs;
    const product = nextReal === null ? generator.next(atMs - 60_000) : nextReal();
    yield builder.build({ event: 'created', product, atMs }).body;
  }
}

function realProducts(random: Random): () => { Id: string; Name: string } {
  const lines = readFileSync(recordsFile, 'utf8').trim().split('\n');
  let next = 0;
  return () => {
    const line = lines[next % lines.length] ?? '';
    next += 1;
    const { Id } = JSON.parse(line) as { Id: string };
    return JSON.parse(line.replaceAll(Id, random.uuid())) as { Id: string; Name: string };
  };
}

/** Maximum number of concurrent notifications. */
const inFlightMax = { 'full speed': 64, 'one at a time': 1 } as const;
type Arrival = keyof typeof inFlightMax;

/** Bytes per notification. */
interface LogBytes {
  /** Database file after a checkpoint, minus the size of an empty one. */
  readonly file: number;
  /** Pages of the table of bodies. */
  readonly bodies: number;
  /** Pages of the table of notifications and its indexes. */
  readonly notifications: number;
}

interface BodySizes {
  readonly kind: BodyKind;
  readonly arrival: Arrival;
  readonly count: number;
  /** Mean size of the raw bodies. */
  readonly rawBytes: number;
  readonly stored: LogBytes;
  readonly compacted: LogBytes;
  /** Processor time of compaction per notification, µs. */
  readonly compactUs: number;
}

/** Stores `count` notifications, and measures the file before and after compaction. */
async function measureSizes(
  kind: BodyKind,
  arrival: Arrival,
  count: number,
  { cleanup, folder, progress }: BenchContext,
): Promise<BodySizes> {
  const dataDir = cleanup.temporaryFolder(folder);
  progress.show(`${count} notifications, ${kind}, ${arrival}: storing`);
  await storeAll(dataDir, [], 1);
  const empty = statSync(databaseFile(dataDir)).size;
  const rawBytes = await storeAll(dataDir, bodiesOf(kind, count), inFlightMax[arrival]);
  const stored = readBytes(dataDir, count, empty);
  progress.show(`${count} notifications, ${kind}, ${arrival}: compacting`);
  const before = process.cpuUsage();
  const { signal } = new AbortController();
  await compactLog({ dataDir, freeShare: 0, rest: async () => {}, signal });
  const { user, system } = process.cpuUsage(before);
  const compacted = readBytes(dataDir, count, empty);
  cleanup.removeFolder(dataDir);
  const compactUs = (user + system) / count;
  return { kind, arrival, count, rawBytes: rawBytes / count, stored, compacted, compactUs };
}

/** Resolves with the total size of the bodies. */
async function storeAll(
  dataDir: string,
  given: Iterable<Buffer>,
  atOnceMax: number,
): Promise<number> {
  const store = await openStore({ dataDir, nowUs: () => Date.now() * 1_000 });
  let rawBytes = 0;
  const inFlight = new Set<Promise<void>>();
  for (const body of given) {
    rawBytes += body.length;
    const accepted = store
      .accept({
        ...{ body, subscription: 'bench', source: 'push', headers: [] },
        receivedAtUs: Date.now() * 1_000,
      })
      .then(() => void inFlight.delete(accepted));
    inFlight.add(accepted);
    if (inFlight.size >= atOnceMax) await Promise.race(inFlight);
  }
  await Promise.all(inFlight);
  await store.close();
  return rawBytes;
}

function readBytes(dataDir: string, count: number, empty: number): LogBytes {
  const database = new Database(databaseFile(dataDir));
  try {
    database.pragma('wal_checkpoint(TRUNCATE)');
    const pages = database
      .prepare<[], { table: string; bytes: number }>(
        `SELECT tbl_name AS "table", sum(pgsize) AS bytes
         FROM dbstat JOIN sqlite_schema USING (name) GROUP BY tbl_name`,
      )
      .all();
    const bytesOf = (table: string) => pages.find((one) => one.table === table)?.bytes ?? 0;
    return {
      file: (statSync(databaseFile(dataDir)).size - empty) / count,
      bodies: bytesOf('body') / count,
      notifications: bytesOf('notification') / count,
    };
  } finally {
    database.close();
  }
}

function renderSizes(sizes: readonly BodySizes[]): string {
  const title = [
    ...['bytes per notification', 'raw body', 'file', 'bodies', 'rows and indexes'],
    ...['file / raw', 'compaction µs'],
  ];
  const rows = sizes.flatMap((one) => {
    const { kind, arrival, rawBytes, stored, compacted, compactUs } = one;
    const row = (state: string, bytes: LogBytes, us: number | null) => [
      `${kind}, ${arrival}, ${state}`,
      ...[rawBytes, bytes.file, bytes.bodies, bytes.notifications].map((value) => figure(value)),
      ...[figure(bytes.file / rawBytes, 3), figure(us)],
    ];
    return [row('stored', stored, null), row('compacted', compacted, compactUs)];
  });
  return `${alignTable([title, ...rows])}\nWithout the product index, which is a separate file.`;
}
