/** The benchmark of bodies: what it costs the intake to compress them, and what that saves on the disk. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { createRandom, type Random } from '../src/sandbox/clock.ts';
import { createNotificationBuilder } from '../src/sandbox/delivery/notification.ts';
import { createProductGenerator } from '../src/sandbox/products/product-generator.ts';
import { compactLog } from '../src/store/bodies/compact-log.ts';
import { openStore } from '../src/store/store.ts';
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
  runBenchmark,
  whole,
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
  notifications: whole('N', 'of each kind, at full speed', {
    ...{ usual: 50_000, ...notificationsRange },
  }),
  singles: whole('N', 'of each kind, one at a time', { usual: 5_000, ...notificationsRange }),
  'no-speed': flag('the disk alone'),
  dir: dirOption,
  check: flag('exit 1 when a target is missed'),
};

/** Compression may cost a seventh of the speed, and has to leave a fifth of the bytes. */
const speedMin = 0.85;
const shareMax = 0.2;

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(bodies, argv, io);
}

const bodies: Benchmark<typeof options> = {
  command: 'npm run bench:bodies --',
  about: `Measures what it costs to compress the bodies of the log, and what it saves:
  speed  intake over HTTPS, with bodies kept as they came and compressed, in turn
  disk   bytes of earshot.db for each notification: stored at full speed, stored one at a time, and both
         after \`earshot compact\`; for generated products, and for the real records of ../shared/fixtures
         where these are there`,
  options,
  closing: `Exit code: 0 done, 1 failed, or (--check) a target is missed; 2 wrong usage.

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
      target('intake, compressed to as they came', ratio, { min: speedMin }),
      ...sizes.map(({ kind, arrival, rawBytes, compacted }) => {
        const name = `log to raw bodies, ${kind}, ${arrival}, compacted`;
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

/** The same program in both, with the product index on. */
const bodyStates = ['as they came', 'compressed'] as const;
type BodyState = (typeof bodyStates)[number];

interface BodySpeed {
  readonly rounds: readonly Round<BodyState>[];
  /** Requests per second with compression to those without: of the rounds' ratios. */
  readonly ratio: Spread | null;
}

async function measureSpeed(setting: BenchSetting): Promise<BodySpeed> {
  // As many packs of different bodies as anybody would receive in a minute.
  const distinct = { ...setting, templateCount: templateCounts.distinct };
  const uncompressed = { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'uncompressed.ts')}` };
  const rounds = await measureInTurn(setting, 'speed', bodyStates, async (state, dataFolder) => {
    const environment = state === 'compressed' ? {} : uncompressed;
    const figures = await measureServer(distinct, 'earshot', dataFolder, { environment });
    requireState(state, dataFolder);
    return figures;
  });
  return { rounds, ratio: speedRatios(rounds, 'compressed', 'as they came') };
}

/** Throws where the switch did not do what it should: then the comparison is of nothing. */
function requireState(state: BodyState, dataFolder: string): void {
  const encodings = readDatabase(databaseFile(dataFolder), (database) =>
    database.prepare('SELECT DISTINCT encoding FROM body').pluck().all().join(),
  );
  if ((encodings === 'identity') !== (state === 'as they came')) {
    throw new Error(`bodies were to be kept ${state}, and are ${encodings}`);
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
  const title = ['bodies', 'requests/s', 'p50 ms', 'p99 ms', 'processor µs', 'bytes a row'];
  const each = rounds.map((round) => {
    const one = speedRatios([round], 'compressed', 'as they came');
    return figure(one?.median ?? null, 2);
  });
  const spread = `${figure(ratio?.median ?? null, 2)} (rounds: ${each.join(' ')})`;
  return `${alignTable([title, ...rows])}\nSpeed with compression to that without: ${spread}`;
}

/** Processor time of the receiver, all its threads, for a request: what counts on a machine that others use, too. */
function cpuUs({ serverCores, requestsPerSecond }: RunFigures): number | null {
  return serverCores === null ? null : (serverCores * 1e6) / requestsPerSecond;
}

const bodyKinds = ['generated', 'real'] as const;
type BodyKind = (typeof bodyKinds)[number];

const recordsFile = new URL('../../shared/fixtures/products.jsonl', import.meta.url);

const firstMs = Date.UTC(2026, 6, 1);
const intervalMs = 2_700;
/** Not the seed that the dictionary is trained with. */
const seed = 99;

/** As the catalogue sends them: nothing odd. */
export const usualShape = {
  ackIdAbsent: false,
  ackIdGuid: false,
  arrayBody: false,
  capitalValue: false,
  valueAbsent: false,
};

/**
 * Bodies as the catalogue sends them, in one subscription. None comes twice: real records, which are few, are told of
 * again under ids of their own.
 */
function* bodiesOf(kind: BodyKind, count: number): Generator<Buffer> {
  const random = createRandom(seed);
  const generator = createProductGenerator({ seed });
  const nextReal = kind === 'real' ? realProducts(random) : null;
  const builder = createNotificationBuilder({ subscriptionId: random.uuid(), random });
  for (let index = 0; index < count; index += 1) {
    const atMs = firstMs + index * intervalMs;
    const product = nextReal === null ? generator.next(atMs - 60_000) : nextReal();
    yield builder.build({ event: 'created', product, atMs, shape: usualShape }).body;
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

/** How notifications arrive: many at the same time, or each alone. */
const inFlightMax = { 'full speed': 64, 'one at a time': 1 } as const;
type Arrival = keyof typeof inFlightMax;

/** All of these are bytes for one notification. */
interface LogBytes {
  /** The file, its write-ahead log taken in, without what an empty one takes up. */
  readonly file: number;
  /** Pages of the table of bodies. */
  readonly bodies: number;
  /** Pages of the table of notifications, and of its indexes. */
  readonly notifications: number;
}

interface BodySizes {
  readonly kind: BodyKind;
  readonly arrival: Arrival;
  readonly count: number;
  /** Mean size of the bodies as they came. */
  readonly rawBytes: number;
  readonly stored: LogBytes;
  readonly compacted: LogBytes;
  /** What compacting took, µs of this program's processors for a notification. */
  readonly compactUs: number;
}

/** Stores so many notifications, looks at the file, compacts it, and looks again. */
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

/** Resolves with the size of all bodies. */
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
    ...['bytes for a notification', 'raw body', 'file', 'bodies', 'rows and indexes'],
    ...['file to raw', 'compacting µs'],
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
  return `${alignTable([title, ...rows])}\nThe product index is a file of its own, and not in these figures.`;
}
