/** Benchmark of the shared log: intake of one and of three receivers with one PostgreSQL, node lag, and takeover. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from '../test/helpers/postgres-server.ts';
import { median, renderTable, target } from './figures.ts';
import { defineBenchmark } from './harness.ts';
import type { LoadResult } from './load.ts';
import {
  applyLoad,
  type BenchSetting,
  createSetting,
  loadOptions,
  measureInTurn,
  readDatabase,
  verifyDatabase,
} from './measure.ts';
import { freePort } from './processes.ts';
import { databaseFile, type RunningServer, startServer } from './servers.ts';

/** Compared states; the first is the baseline. */
const states = ['own log', 'one', 'three', 'one, standby', 'three, standby'] as const;
type State = (typeof states)[number];

/** Expected with a synchronous standby, notifications per second. */
const expectedPerSecond = 1_000;

const takeoverSecondsMax = 30;

export const benchmark = defineBenchmark({
  command: 'npm run bench:shared --',
  about: `Measures receivers with a shared log in one PostgreSQL (15 or newer, Debian: postgresql), over HTTPS on
loopback, in one run with a receiver that has a log of its own:
  own log                one receiver with its own SQLite log: the baseline
  one, three             receivers with a shared log; three share the connections
  one, three, standby    the same with a synchronous standby on this machine (EARSHOT_LOG_SYNC=standby)
After "one", starts a receiver with an empty disk. At the end, kills the receiver that runs the
background jobs, and measures the time until another one does.`,
  options: loadOptions,
  refuse: () => (findPostgres() === null ? 'PostgreSQL 15 or newer is not installed.' : null),
  async measure(chosen, context) {
    const setting = await createSetting(chosen, context);
    const rounds = await measureInTurn(setting, 'shared log', states, (state, dataFolder) =>
      measureState(setting, state, dataFolder),
    );
    context.progress.show('takeover');
    const takeoverSeconds = await measureTakeover(setting);
    const middle = (pick: (figures: StateFigures) => number | null) => (state: State) =>
      median(rounds.map((round) => pick(round[state])));
    const perSecond = middle((one) => one.perSecond);
    const ratio = (state: State) =>
      median(rounds.map((round) => round[state].perSecond / round[states[0]].perSecond));
    return {
      setting: setting.text,
      figures: { rounds, takeoverSeconds },
      text: [
        renderTable(states, [
          ['', (state) => state],
          ['1/s', perSecond],
          ['ratio', ratio, 2],
          ['p99 ms', middle((one) => one.p99Ms), 1],
          ['receiver cores', middle((one) => one.receiverCores), 2],
          ['lag', middle((one) => one.lagEntries)],
          ['caught up ms', middle((one) => one.catchUpMs)],
          ['with an empty disk, 1/s', middle((one) => one.fillPerSecond)],
        ]),
      ],
      targets: [
        ...(['one, standby', 'three, standby'] as const).map((state) =>
          target(`${state}, 1/s`, perSecond(state), { min: expectedPerSecond }),
        ),
        target('takeover after a kill, s', takeoverSeconds, { max: takeoverSecondsMax }),
      ],
      faults: rounds.flatMap((round) =>
        states.flatMap((state) => round[state].faults.map((fault) => `${state}: ${fault}`)),
      ),
    };
  },
});

interface StateFigures {
  readonly perSecond: number;
  readonly p99Ms: number;
  /** Processor time of all receivers, in cores. */
  readonly receiverCores: number;
  /** Largest lag of a receiver during the load, in entries. */
  readonly lagEntries: number | null;
  /** Time after the load until all receivers have applied everything. */
  readonly catchUpMs: number | null;
  /** Notifications per second that a receiver with an empty disk applies; only with one receiver. */
  readonly fillPerSecond: number | null;
  readonly faults: readonly string[];
}

/** Starts a receiver with an empty disk; returns the notifications per second that it applies, with its start. */
async function measureFill(
  setting: BenchSetting,
  folder: string,
  database: Database,
): Promise<number> {
  const startedMs = performance.now();
  const receivers = await startReceivers(setting, join(folder, 'empty'), 1, database);
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
  const sum = (pick: (load: LoadResult) => number) =>
    loads.reduce((total, load) => total + pick(load), 0);
  // Every receiver has what any of them answered.
  const faults = loads.flatMap(({ run, answered, statuses, breaks }) => [
    ...receivers.flatMap(({ dataFolder }) => {
      const { missing, repeated } = verifyDatabase(databaseFile(dataFolder), run, answered);
      return missing || repeated ? [`${missing} missing, ${repeated} repeated`] : [];
    }),
    ...Object.keys({ ...statuses, ...breaks })
      .filter((one) => one !== '200')
      .map((one) => `refused or broken: ${one}`),
  ]);
  return {
    perSecond: sum(({ requestsPerSecond }) => requestsPerSecond),
    p99Ms: Math.max(...loads.map(({ p99Ms }) => p99Ms)),
    receiverCores: sum(({ serverCores }) => serverCores ?? 0),
    ...{ lagEntries, catchUpMs, fillPerSecond, faults },
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
    mkdirSync(dataFolder, { mode: 0o700, recursive: true });
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
async function measureTakeover(setting: BenchSetting): Promise<number> {
  const folder = setting.cleanup.temporaryFolder(setting.folder);
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
