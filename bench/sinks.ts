/** Benchmark of PostgreSQL sinks: the time to drain a backlog of the log into tables. */
import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { createRunProgram } from '../src/core/host/run-program.ts';
import type { SinkDefinition } from '../src/features/sinks/registry.ts';
import { startSinks } from '../src/features/sinks/run-sinks.ts';
import type { SinkContext } from '../src/features/sinks/target.ts';
import {
  findPostgres,
  type PostgresServer,
  startPostgres,
} from '../test/helpers/postgres-server.ts';
import { openStore } from '../test/helpers/store.ts';
import {
  alignTable,
  figure,
  hasFaults,
  median,
  renderMachine,
  renderTargets,
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
import { freePort } from './processes.ts';
import { prepareQueryData } from './query-data.ts';
import { databaseFile } from './servers.ts';

const options = {
  rows: integer('N', 'products in the log', {
    ...{ default: 20_000, quick: 2_000, min: 100, max: 10_000_000 },
  }),
  rounds: integer('N', 'number of rounds; figures are medians', {
    ...{ default: 3, quick: 1, min: 1, max: 100 },
  }),
  dir: dirOption,
  quick: flag('one round with 2000 products'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(sinks, argv, io);
}

/** Measured states in turn; the first is the baseline. */
const states = ['one by one', 'products', 'and notifications'] as const;
type State = (typeof states)[number];

const perSecondMin = 2_000;

const sinks: Benchmark<typeof options> = {
  command: 'npm run bench:sinks --',
  about: `Measures how fast a PostgreSQL sink drains a backlog, from the log to the last acknowledgement in the queue,
with PostGIS on the same machine, and in the same run the program that a user would write:
  one by one          upserts each notification in a transaction of its own: the baseline
  products            the sink, with its table of products
  and notifications   the same with the table of notifications`,
  options,
  closing: `PostgreSQL 15 or newer must be installed, with PostGIS (Debian: postgresql, postgresql-postgis).

Exit code: 0 done, 1 a notification is missing or (--check) a target was missed; 2 invalid usage.

Examples:
  npm run bench:sinks
  npm run bench:sinks -- --quick`,
  async measure(chosen, context) {
    if (findPostgres() === null) {
      throw new Error('PostgreSQL is not installed. Debian: apt-get install postgresql-postgis');
    }
    const { cleanup, folder, progress, about } = context;
    const data = await prepareQueryData(
      join(cleanup.temporaryFolder(folder), 'data'),
      chosen.rows,
      progress,
    );
    const server = await startServer(context);
    const rounds: Record<State, Drained>[] = [];
    for (let round = 1; round <= chosen.rounds; round += 1) {
      const figures: Partial<Record<State, Drained>> = {};
      for (const state of states) {
        progress.show(`round ${round} of ${chosen.rounds}: ${state}`);
        figures[state] = await measureState(state, { server, context, logFolder: data.folder });
      }
      rounds.push(figures as Record<State, Drained>);
    }
    await server.stop();
    const middle = (state: State, value: (one: Drained) => number) =>
      median(rounds.map((round) => value(round[state])));
    const rate = (state: State) => middle(state, ({ perSecond }) => perSecond);
    const ratio = (state: State) =>
      median(rounds.map((round) => round[state].perSecond / round['one by one'].perSecond));
    const targets = [target('products, notifications/s', rate('products'), { min: perSecondMin })];
    const faults = rounds.flatMap((round) =>
      states
        .filter((state) => round[state].products !== data.products)
        .map((state) => `${state}: ${round[state].products} of ${data.products} products`),
    );
    return {
      report: { ...about, setting: chosen, data, rounds, targets, faults },
      text: [
        renderMachine(
          about.machine,
          `${data.notifications} notifications, ${data.products} products`,
        ),
        alignTable([
          ['', 'notifications/s', 'ratio', 'cores of this process'],
          ...states.map((state) => [
            state,
            figure(rate(state)),
            figure(ratio(state), 1),
            figure(
              middle(state, ({ cores }) => cores),
              2,
            ),
          ]),
        ]),
        renderTargets(targets),
        ...(faults.length > 0 ? [['FAILED', ...faults].join('\n  ')] : []),
        `Repeat: ${about.command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

interface Drained {
  readonly perSecond: number;
  readonly cores: number;
  /** Rows of the table of products. */
  readonly products: number;
}

async function startServer({ cleanup, folder }: BenchContext): Promise<PostgresServer> {
  return startPostgres({
    ...{ folder: cleanup.temporaryFolder(folder), port: await freePort() },
    onStart: (child) => cleanup.ownProcess(child),
  });
}

interface Measured {
  server: PostgresServer;
  context: BenchContext;
  /** Folder with the log. */
  logFolder: string;
}

async function measureState(
  state: State,
  { server, context, logFolder }: Measured,
): Promise<Drained> {
  const name = `bench_${randomUUID().replaceAll('-', '')}`;
  await query(server.url('postgres'), `CREATE DATABASE ${name}`);
  const url = server.url(name);
  await query(url, 'CREATE EXTENSION postgis');
  const dataDir = context.cleanup.temporaryFolder(context.folder);
  cpSync(databaseFile(logFolder), databaseFile(dataDir));
  const store = await openStore({ dataDir, nowUs });
  try {
    const last = await store.lastPosition();
    const [startMs, startCpu] = [performance.now(), process.cpuUsage()];
    if (state === 'one by one') await upsertEach(store, url);
    else await drain(store, url, state === 'products' ? null : 'events');
    const seconds = (performance.now() - startMs) / 1_000;
    const { user, system } = process.cpuUsage(startCpu);
    const [row] = await query<{ products: number }>(
      url,
      'SELECT count(*)::int AS products FROM earshot_products',
    );
    const products = row?.products ?? 0;
    return { perSecond: last / seconds, cores: (user + system) / 1e6 / seconds, products };
  } finally {
    await store.close();
    context.cleanup.removeFolder(dataDir);
    await query(server.url('postgres'), `DROP DATABASE ${name} WITH (FORCE)`);
  }
}

const nowUs = () => Date.now() * 1_000;

type Store = Awaited<ReturnType<typeof openStore>>;

/** Reads the log in order, and commits each product; compares nothing. */
async function upsertEach(store: Store, url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(
    `CREATE TABLE earshot_products (id text PRIMARY KEY, name text, record jsonb,
       footprint geometry(Geometry, 4326));
     CREATE INDEX ON earshot_products USING gist (footprint)`,
  );
  for await (const { position, productId, productName } of store.find({ order: 'oldest' })) {
    const { value } = JSON.parse(Buffer.from(await store.body(position)).toString());
    const { GeoFootprint: footprint = null } = value;
    await client.query(
      `INSERT INTO earshot_products VALUES ($1, $2, $3, ST_GeomFromGeoJSON($4))
       ON CONFLICT (id) DO UPDATE SET name = excluded.name, record = excluded.record,
         footprint = excluded.footprint`,
      [productId, productName, value, footprint && JSON.stringify(footprint)],
    );
  }
  await client.end();
}

/** Runs the sink of a receiver until it has acknowledged the whole log. */
async function drain(store: Store, url: string, notifications: string | null): Promise<void> {
  const nothing = () => undefined;
  const fail = (_fields: object, message: string) => {
    throw new Error(message);
  };
  const context: SinkContext = {
    ...{ sinks: store.sinks, log: store, nowUs, random: Math.random, fetch },
    pause: (ms, signal) => delay(ms, undefined, { signal }).catch(nothing),
    logger: { debug: nothing, info: nothing, warn: fail, error: fail },
    run: createRunProgram({ env: process.env }),
    urls: { catalogue: 'https://catalogue.example.org', receiver: undefined },
  };
  const definition: SinkDefinition = {
    name: 'bench',
    target: {
      ...{ kind: 'postgres', urls: [url], password: null, ca: null, notifications },
      ...{ products: 'earshot_products', columns: null, deleted: 'mark', create: true },
    },
    ...{ subscriptions: [], events: [], filter: '', startAt: 'start', concurrency: 256 },
    ...{ timeoutMs: 30_000, attemptsMax: 5 },
  };
  const running = startSinks(context, [definition]);
  const last = await store.lastPosition();
  const delivered = async () => (await store.sinks.deliveries())[0]?.delivered ?? 0;
  while ((await delivered()) < last) await delay(20);
  await running.stop();
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
