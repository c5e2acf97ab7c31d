/** Benchmark of the shared log: intake of one and of three receivers with one PostgreSQL, node lag, and takeover. */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from '../test/helpers/postgres-server.ts';
import {
  alignTable,
  figure,
  hasFaults,
  median,
  renderMachine,
  renderTargets,
  target,
} from './figures.ts';
import { type BenchIo, type Benchmark, dirOption, flag, integer, runBenchmark } from './harness.ts';
import type { LoadResult } from './load.ts';
import {
  applyLoad,
  type BenchSetting,
  createSetting,
  loadOptions,
  measureInTurn,
  type Round,
  readDatabase,
  verifyDatabase,
} from './measure.ts';
import { freePort } from './processes.ts';
import { databaseFile, type RunningServer, startServer } from './servers.ts';

const options = {
  ...loadOptions,
  rounds: integer('N', 'number of rounds; figures are medians', {
    ...{ default: 3, quick: 1, min: 1, max: 100 },
  }),
  dir: dirOption,
  quick: flag('one round of 2 s after 1 s of warm-up'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(shared, argv, io);
}

/** Compared states; the first is the baseline. */
const states = ['own log', 'one', 'three', 'one, standby', 'three, standby'] as const;
type State = (typeof states)[number];

/** Expected with a synchronous standby, notifications per second. */
const expectedPerSecond = 1_000;

const takeoverSecondsMax = 30;

const shared: Benchmark<typeof options> = {
  command: 'npm run bench:shared --',
  about: `Measures receivers with a shared log in one PostgreSQL, over HTTPS on loopback, in one run with a receiver
that has a log of its own:
  own log                one receiver with its own SQLite log: the baseline
  one, three             receivers with a shared log; three share the connections
  one, three, standby    the same with a synchronous standby on this machine (EARSHOT_LOG_SYNC=standby)
After "one", starts a receiver with an empty disk. At the end, kills the receiver that runs the
background jobs, and measures the time until another one does.`,
  options,
  closing: `PostgreSQL 15 or newer must be installed (Debian: postgresql). Its data is in the folder of --dir.

Exit code: 0 done, 1 an answered notification is missing, a request failed, or (--check) a target was
missed; 2 invalid usage.

Examples:
  npm run bench:shared
  npm run bench:shared -- --quick
  npm run bench:shared -- --rounds 5 --seconds 30`,
  async measure(chosen, context) {
    if (findPostgres() === null) {
      throw new Error(
        'PostgreSQL 15 or newer is not installed. Debian: apt-get install postgresql',
      );
    }
    const setting = await createSetting(chosen, context);
    const rounds = await measureInTurn(setting, 'shared log', states, (state, dataFolder) =>
      measureState(setting, state, dataFolder),
    );
    context.progress.show('takeover');
    const takeoverSeconds = await measureTakeover(setting, context.folder);
    const faults = rounds.flatMap((round) =>
      states.flatMap((state) => faultsIn(state, round[state])),
    );
    const targets = targetsOf(rounds, takeoverSeconds);
    const { machine, command } = context.about;
    const { connections, measureMs, warmUpMs } = setting;
    const load = `${connections} connections, ${measureMs / 1_000} s after ${warmUpMs / 1_000} s of warm-up; median of ${rounds.length} round(s)`;
    return {
      report: { ...context.about, rounds, takeoverSeconds, targets, faults },
      text: [
        renderMachine(machine, load),
        renderStates(rounds),
        `takeover after a kill: ${figure(takeoverSeconds, 1)} s`,
        `a receiver with an empty disk: ${figure(middle(rounds, 'one', ({ fillPerSecond }) => fillPerSecond))} notifications/s`,
        renderTargets(targets),
        ...(faults.length > 0 ? [['FAILED', ...faults].join('\n  ')] : []),
        `Repeat: ${command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

interface StateFigures {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Processor time of all receivers, and of PostgreSQL with other programs, in cores. */
  readonly receiverCores: number | null;
  readonly otherCores: number | null;
  /** Largest lag of a receiver during the load, in entries. */
  readonly lagEntries: number | null;
  /** Time after the load until all receivers have applied everything. */
  readonly catchUpMs: number | null;
  /** Notifications per second that a receiver with an empty disk applies; only with one receiver. */
  readonly fillPerSecond: number | null;
  readonly missing: number;
  readonly refused: number;
}

/** Starts a receiver with an empty disk; returns the notifications per second that it applies, with its start. */
async function measureFill(
  setting: BenchSetting,
  folder: string,
  database: Database,
): Promise<number> {
  const startedMs = performance.now();
  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const receivers = await startReceivers(setting, empty, 1, database);
  await caughtUp(receivers, database);
  const seconds = (performance.now() - startedMs) / 1_000;
  const [{ count } = { count: '0' }] = await query<{ count: string }>(
    database.url,
    'SELECT position AS count FROM earshot.head',
  );
  for (const { server } of receivers) await server.stop();
  return Number(count) / seconds;
}

async function measureState(
  setting: BenchSetting,
  state: State,
  folder: string,
): Promise<StateFigures> {
  const count = state.startsWith('three') ? 3 : 1;
  const database = state === 'own log' ? null : await startDatabase(setting, state);
  const receivers = await startReceivers(setting, folder, count, database);
  const share = { ...setting, connections: Math.ceil(setting.connections / count) };
  const lag = watchLag(receivers, database);
  const loads = await Promise.all(
    receivers.map(async ({ server }) => {
      const run = setting.nextRun();
      return { run, ...(await applyLoad(share, server, run)) };
    }),
  );
  const endedMs = performance.now();
  await caughtUp(receivers, database);
  const catchUpMs = database === null ? null : performance.now() - endedMs;
  const lagEntries = await lag.stop();
  const fillPerSecond =
    database === null || state !== 'one' ? null : await measureFill(setting, folder, database);
  for (const { server } of receivers) await server.stop();
  await database?.stop();
  const files = receivers.map(({ dataFolder }) => databaseFile(dataFolder));
  const missing = loads.flatMap(({ run, answered }) =>
    files
      .map((file) => verifyDatabase(file, run, answered))
      .map((one) => (one.missing ?? 0) + (one.repeated ?? 0)),
  );
  const sum = (pick: (load: LoadResult) => number) =>
    loads.reduce((total, load) => total + pick(load), 0);
  const receiverCores = sum(({ serverCores }) => serverCores ?? 0);
  // Each load counts the other receivers and generators as other programs.
  const [first] = loads;
  const others = loads.slice(1);
  const otherCores =
    first?.otherCores == null
      ? null
      : first.otherCores -
        others.reduce((total, one) => total + (one.serverCores ?? 0) + one.generatorCores, 0);
  return {
    perSecond: sum(({ requestsPerSecond }) => requestsPerSecond),
    p99Ms: Math.max(...loads.map(({ p99Ms }) => p99Ms)),
    ...{ receiverCores, otherCores, lagEntries, catchUpMs, fillPerSecond },
    missing: missing.reduce((total, one) => total + one, 0),
    refused: sum(
      ({ statuses, breaks }) =>
        Object.entries(statuses).reduce(
          (total, [status, n]) => total + (status === '200' ? 0 : n),
          0,
        ) + Object.values(breaks).reduce((total, n) => total + n, 0),
    ),
  };
}

interface Database {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts PostgreSQL, with a synchronous standby for the states that need one. */
async function startDatabase(
  { cleanup, folder: parent }: Pick<BenchSetting, 'cleanup' | 'folder'>,
  state: State,
): Promise<Database> {
  const start = async (standbyOf?: { port: number; name: string }) => {
    const folder = cleanup.temporaryFolder(parent);
    const settings = { shared_buffers: '128MB', max_wal_size: '1GB' };
    return startPostgres({
      ...{ folder, port: await freePort(), settings, onStart: cleanup.ownProcess },
      ...(standbyOf === undefined ? {} : { standbyOf }),
    });
  };
  const primary = await start();
  const servers: PostgresServer[] = [primary];
  if (state.endsWith('standby')) {
    servers.unshift(await start({ port: primary.port, name: 'standby' }));
    await query(primary.url('postgres'), "ALTER SYSTEM SET synchronous_standby_names = 'standby'");
    await query(primary.url('postgres'), 'SELECT pg_reload_conf()');
  }
  return {
    url: primary.url('postgres'),
    stop: async () => {
      for (const server of servers) await server.stop();
    },
  };
}

async function query<Row extends pg.QueryResultRow>(url: string, sql: string): Promise<Row[]> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

interface Receiver {
  readonly server: RunningServer;
  readonly dataFolder: string;
}

async function startReceivers(
  { endpoint, cleanup }: BenchSetting,
  folder: string,
  count: number,
  database: Database | null,
): Promise<Receiver[]> {
  const receivers: Receiver[] = [];
  for (let i = 1; i <= count; i += 1) {
    const dataFolder = join(folder, `receiver-${i}`);
    mkdirSync(dataFolder, { mode: 0o700 });
    const environment =
      database === null
        ? { EARSHOT_INDEX: 'off' }
        : { EARSHOT_INDEX: 'off', EARSHOT_LOG_URL: database.url, EARSHOT_NODE: `receiver-${i}` };
    const server = await startServer('earshot', { endpoint, dataFolder, cleanup, environment });
    receivers.push({ server, dataFolder });
  }
  return receivers;
}

/** Returns the number of entries that the receiver with the largest lag has not applied. */
async function lagOf(receivers: readonly Receiver[], { url }: Database): Promise<number> {
  const [head] = await query<{ number: string }>(url, 'SELECT number FROM earshot.head');
  const applied = receivers.map(({ dataFolder }) =>
    readDatabase(databaseFile(dataFolder), (db) =>
      Number(db.prepare('SELECT applied FROM shared_log').pluck().get()),
    ),
  );
  return Number(head?.number) - Math.min(...applied);
}

const lagIntervalMs = 200;

function watchLag(receivers: readonly Receiver[], database: Database | null) {
  const stopping = new AbortController();
  let largest: number | null = null;
  const watch = async () => {
    while (database !== null && !stopping.signal.aborted) {
      largest = Math.max(largest ?? 0, await lagOf(receivers, database));
      await delay(lagIntervalMs);
    }
  };
  const watching = watch();
  return {
    stop: async () => {
      stopping.abort();
      await watching;
      return largest;
    },
  };
}

const catchUpPollMs = 20;

async function caughtUp(receivers: readonly Receiver[], database: Database | null): Promise<void> {
  // Background jobs append an entry now and then.
  while (database !== null && (await lagOf(receivers, database)) > 2) await delay(catchUpPollMs);
}

/** Kills the receiver that runs the background jobs; returns the time until another one runs them. */
async function measureTakeover(setting: BenchSetting, parent: string): Promise<number> {
  const folder = join(setting.cleanup.temporaryFolder(parent), randomUUID());
  mkdirSync(folder);
  const database = await startDatabase(setting, 'three');
  const receivers = await startReceivers(setting, folder, 3, database);
  const leader = async () => {
    const [row] = await query<{ name: string; term: string }>(
      database.url,
      `SELECT node.name, term FROM earshot.lease JOIN earshot.node ON node.id = holder
       WHERE lease.name = 'leader' AND expires_at > clock_timestamp()`,
    );
    return row;
  };
  let first = await leader();
  for (; first === undefined; first = await leader()) await delay(catchUpPollMs);
  const index = Number(first.name.split('-')[1]) - 1;
  const killed = receivers[index];
  if (killed === undefined) throw new Error('The leader is unknown.');
  process.kill(killed.server.processId, 'SIGKILL');
  const startedMs = performance.now();
  while (((await leader())?.term ?? first.term) === first.term) await delay(catchUpPollMs);
  const seconds = (performance.now() - startedMs) / 1_000;
  for (const one of receivers) if (one !== killed) await one.server.stop();
  await database.stop();
  return seconds;
}

function faultsIn(state: State, { missing, refused }: StateFigures): string[] {
  return [
    ...(missing > 0 ? [`${state}: ${missing} answered notifications are missing or repeated`] : []),
    ...(refused > 0 ? [`${state}: ${refused} requests were refused or broken`] : []),
  ];
}

type Rounds = readonly Round<State, StateFigures>[];

function middle(
  rounds: Rounds,
  state: State,
  pick: (figures: StateFigures) => number | null,
): number | null {
  return median(rounds.map((round) => pick(round[state])));
}

function ratioOf(rounds: Rounds, state: State): number | null {
  return median(rounds.map((round) => round[state].perSecond / round[states[0]].perSecond));
}

function renderStates(rounds: Rounds): string {
  const header = [
    '',
    '1/s',
    'ratio',
    'p99 ms',
    'receiver cores',
    'other cores',
    'lag',
    'caught up ms',
  ];
  const rows = states.map((state) => [
    state,
    figure(middle(rounds, state, ({ perSecond }) => perSecond)),
    figure(ratioOf(rounds, state), 2),
    figure(
      middle(rounds, state, ({ p99Ms }) => p99Ms),
      1,
    ),
    figure(
      middle(rounds, state, ({ receiverCores }) => receiverCores),
      2,
    ),
    figure(
      middle(rounds, state, ({ otherCores }) => otherCores),
      2,
    ),
    figure(middle(rounds, state, ({ lagEntries }) => lagEntries)),
    figure(middle(rounds, state, ({ catchUpMs }) => catchUpMs)),
  ]);
  return alignTable([header, ...rows]);
}

function targetsOf(rounds: Rounds, takeoverSeconds: number) {
  const perSecond = (state: State) => middle(rounds, state, (figures) => figures.perSecond) ?? 0;
  return [
    target('one receiver with a synchronous standby, 1/s', perSecond('one, standby'), {
      min: expectedPerSecond,
    }),
    target('three receivers with a synchronous standby, 1/s', perSecond('three, standby'), {
      min: expectedPerSecond,
    }),
    target('takeover after a kill, s', takeoverSeconds, { max: takeoverSecondsMax }),
  ];
}
