/** Runs load on one server, samples its memory, and checks its file afterwards; and alternates several runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { alignTable, figure, median, megabytes, type Spread, spreadOf } from './figures.ts';
import { type BenchContext, integer, number } from './harness.ts';
import type { LoadJob, LoadResult, SequenceRange } from './load.ts';
import { type AckIdForm, sequenceOf, templateCounts } from './notifications.ts';
import { watchMemory } from './processes.ts';
import {
  createEndpoint,
  databaseFile,
  type Endpoint,
  type RunningServer,
  type ServerName,
  startServer,
} from './servers.ts';

/** Options of every benchmark that loads a server. */
export const loadOptions = {
  rounds: integer('N', 'number of rounds; figures are medians', {
    ...{ default: 5, quick: 1, min: 1, max: 1_000 },
  }),
  seconds: number('S', 'measured time of one server or state in one round', {
    ...{ default: 8, quick: 2, min: 0.1, max: 600 },
  }),
  'warm-up-seconds': number('S', 'load before the measurement', {
    ...{ default: 2, quick: 1, min: 0.1, max: 600 },
  }),
  connections: integer('N', 'keep-alive connections, one request in flight on each', {
    ...{ default: 64, min: 1, max: 10_000 },
  }),
} as const;

/** Setting shared by all runs of a benchmark. */
export interface BenchSetting extends Pick<BenchContext, 'cleanup' | 'progress' | 'folder'> {
  readonly endpoint: Endpoint;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Notifications per second; undefined: as many as possible. */
  readonly ratePerSecond?: number;
  /** Number of distinct bodies sent in turn (default: templateCounts.default). */
  readonly templateCount?: number;
  /** Returns a unique number below 65,536. */
  nextRun(): number;
}

interface LoadChoice {
  readonly rounds: number;
  readonly connections: number;
  readonly seconds: number;
  readonly 'warm-up-seconds': number;
}

export async function createSetting(
  { rounds, connections, seconds, 'warm-up-seconds': warmUpSeconds }: LoadChoice,
  { cleanup, progress, folder }: BenchContext,
  ackIdForm: AckIdForm = 'observed',
): Promise<BenchSetting> {
  let runs = 0;
  return {
    ...{ cleanup, progress, folder, ackIdForm, connections, rounds },
    warmUpMs: warmUpSeconds * 1_000,
    measureMs: seconds * 1_000,
    endpoint: await createEndpoint(cleanup.temporaryFolder(folder)),
    nextRun() {
      runs += 1;
      return runs;
    },
  };
}

/** Figures of one run. Null if not applicable or not available on this system. */
export interface RunFigures extends Omit<LoadResult, 'answered'> {
  readonly server: ServerName;
  /** Maximum resident memory during the load, bytes. */
  readonly residentBytes: number | null;
  /** Maximum resident memory since the start of the server, bytes. */
  readonly peakResidentBytes: number | null;
  /** Notifications answered with 200, including the warm-up. */
  readonly answered: number;
  readonly missing: number | null;
  readonly repeated: number | null;
  /** Rows in the file at the end. */
  readonly rows: number | null;
  readonly diskBytesPerRow: number | null;
}

const sampleIntervalMs = 100;

/** Additional steps of a run. */
export interface RunSteps {
  /** Additional environment variables of earshot. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Called before the load. */
  readonly prepare?: (running: RunningServer) => Promise<void>;
  /** Called after the load, while the server is running. */
  readonly loaded?: () => void | Promise<void>;
}

/** Starts a server on `dataFolder`, measures it, stops it cleanly and checks its file. */
export async function measureServer(
  setting: BenchSetting,
  server: ServerName,
  dataFolder: string,
  { environment = {}, prepare, loaded }: RunSteps = {},
): Promise<RunFigures> {
  const { endpoint, cleanup } = setting;
  const running = await startServer(server, { endpoint, dataFolder, cleanup, environment });
  await prepare?.(running);
  const run = setting.nextRun();
  const watched = watchMemory(running.processId, sampleIntervalMs);
  const { answered, ...load } = await applyLoad(setting, running, run);
  const memory = watched.stop();
  await loaded?.();
  await running.stop();
  return {
    server,
    ...load,
    residentBytes:
      memory.length === 0 ? null : Math.max(...memory.map(({ residentBytes }) => residentBytes)),
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    answered: answered.reduce((sum, [first, last]) => sum + last - first + 1, 0),
    ...(server === 'bare' ? notStored : verifyDatabase(databaseFile(dataFolder), run, answered)),
  };
}

/** Returns the faults of a run: lost or repeated notifications, other statuses, broken connections. */
export function faultsOf(figures: RunFigures): string[] {
  const { missing, repeated, statuses, breaks } = figures;
  const faults = [
    ...(figures.answered === 0 ? ['nothing was answered with 200'] : []),
    ...(missing ? [`${missing} answered notifications are not in the file`] : []),
    ...(repeated ? [`${repeated} notifications are in the file repeatedly`] : []),
    ...Object.entries(statuses)
      .filter(([status]) => status !== '200')
      .map(([status, count]) => `${count} answers had status ${status}`),
    ...Object.entries(breaks).map(([reason, count]) => `${count} connections broke: ${reason}`),
  ];
  return faults.map((fault) => `${figures.server}: ${fault}`);
}

/** Sends load to a server, by a process of its own. */
export async function applyLoad(
  setting: BenchSetting,
  server: RunningServer,
  run: number,
): Promise<LoadResult> {
  const { endpoint, ackIdForm, connections, warmUpMs, measureMs } = setting;
  const { authorityPem, username, password } = endpoint;
  const job: LoadJob = {
    ...{ host: '127.0.0.1', port: server.port, path: '/notifications/bench' },
    ...{ authorityPem, username, password, ackIdForm, connections, warmUpMs, measureMs, run },
    ratePerSecond: setting.ratePerSecond,
    templateCount: Math.max(setting.templateCount ?? templateCounts.default, connections),
    serverProcessId: server.processId,
  };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')]);
  setting.cleanup.ownProcess(child);
  // If the generator exits before reading its job, its exit code reports it.
  child.stdin.on('error', () => {});
  child.stdin.end(JSON.stringify(job));
  const [output, errors, [exitCode]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit'),
  ]);
  if (exitCode !== 0) throw new Error(`the load generator failed:\n${errors}`);
  return JSON.parse(output);
}

type StoredCounts = Pick<RunFigures, 'missing' | 'repeated' | 'rows' | 'diskBytesPerRow'>;
const notStored: StoredCounts = {
  missing: null,
  repeated: null,
  rows: null,
  diskBytesPerRow: null,
};

/**
 * Checks that a stopped server's database contains every answered notification of a run. Rows and bytes (database and
 * write-ahead log) include those of earlier runs. Throws if the file is not the expected database.
 */
export function verifyDatabase(
  file: string,
  run: number,
  answered: readonly SequenceRange[],
): StoredCounts {
  const bytes = sizeOf(file) + sizeOf(`${file}-wal`);
  const last = answered.at(-1)?.[1] ?? -1;
  const timesFound = new Uint32Array(last + 1);
  // Both stores use the same table and column names.
  const rows = readDatabase(file, (db) => {
    let count = 0;
    for (const ackId of db
      .prepare<[], unknown>('SELECT ack_id FROM notification')
      .pluck()
      .iterate()) {
      count += 1;
      const sequence = typeof ackId === 'string' ? sequenceOf(run, ackId) : undefined;
      if (sequence !== undefined && sequence <= last) {
        timesFound[sequence] = (timesFound[sequence] ?? 0) + 1;
      }
    }
    return count;
  });
  let missing = 0;
  for (const [first, end] of answered) {
    for (let sequence = first; sequence <= end; sequence += 1) {
      if (timesFound[sequence] === 0) missing += 1;
    }
  }
  const repeated = timesFound.filter((times) => times > 1).length;
  return { missing, repeated, rows, diskBytesPerRow: rows === 0 ? 0 : bytes / rows };
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** Opens a database file read-only and returns the result of `read`. */
export function readDatabase<Result>(
  file: string,
  read: (db: Database.Database) => Result,
): Result {
  const db = new Database(file, { readonly: true, fileMustExist: true });
  try {
    return read(db);
  } finally {
    db.close();
  }
}

/** Measurements of one round, by state. */
export type Round<State extends string, Measured = RunFigures> = Readonly<Record<State, Measured>>;

/**
 * Measures all states in each round, each with an empty data folder. Each round starts with another state, so that
 * other activity of the machine affects all states equally.
 */
export async function measureInTurn<State extends string, Measured>(
  { cleanup, progress, folder, rounds: roundCount }: BenchSetting,
  part: string,
  states: readonly State[],
  measure: (state: State, dataFolder: string) => Promise<Measured>,
): Promise<Round<State, Measured>[]> {
  const rounds: Round<State, Measured>[] = [];
  for (let round = 1; round <= roundCount; round += 1) {
    const measured = new Map<State, Measured>();
    for (const [turn] of states.entries()) {
      const state = states[(turn + round - 1) % states.length];
      if (state === undefined) continue;
      progress.show(`${part}, round ${round} of ${roundCount}: ${state}`);
      const dataFolder = cleanup.temporaryFolder(folder);
      measured.set(state, await measure(state, dataFolder));
      cleanup.removeFolder(dataFolder);
    }
    const inOrder = states.map((state) => [state, measured.get(state)]);
    rounds.push(Object.fromEntries(inOrder) as Round<State, Measured>);
  }
  return rounds;
}

/** Returns the ratio of requests per second between two states, per round, as a spread. */
export function speedRatios<State extends string>(
  rounds: readonly Round<NoInfer<State>>[],
  state: State,
  base: State,
): Spread | null {
  return spreadOf(
    rounds.map((round) => round[state].requestsPerSecond / round[base].requestsPerSecond),
  );
}

/** Returns the median of `speedRatios`. */
export function speedRatio<State extends string>(
  rounds: readonly Round<NoInfer<State>>[],
  state: State,
  base: State,
): number | null {
  return speedRatios(rounds, state, base)?.median ?? null;
}

/** Returns the runs of every round. */
export function runsOf<State extends string>(
  rounds: readonly Round<State>[],
  states: readonly State[],
): RunFigures[] {
  return rounds.flatMap((round) => states.map((state) => round[state]));
}

/** Formats a table with a row per state; figures are medians. */
export function renderRounds<State extends string>(
  what: string,
  states: readonly State[],
  rounds: readonly Round<State>[],
  nameOf: (state: State) => string = (state) => state,
): string {
  const header = [
    ...['requests/s', 'p50 ms', 'p99 ms', 'max ms', 'server cores', 'load cores', 'other cores'],
    ...['MB', 'peak MB', 'disk B/row', 'answered', 'missing'],
  ];
  const rows = states.map((state) => [nameOf(state), ...cellsOf(runsOf(rounds, [state]))]);
  return alignTable([[what, ...header], ...rows]);
}

function cellsOf(runs: readonly RunFigures[]): string[] {
  const middle = (pick: (run: RunFigures) => number | null) => median(runs.map(pick));
  const sum = (pick: (run: RunFigures) => number) =>
    runs.reduce((total, run) => total + pick(run), 0);
  const isChecked = runs.every(({ missing }) => missing !== null);
  return [
    figure(middle((run) => run.requestsPerSecond)),
    figure(
      middle((run) => run.p50Ms),
      2,
    ),
    figure(
      middle((run) => run.p99Ms),
      2,
    ),
    figure(
      middle((run) => run.maxMs),
      1,
    ),
    figure(
      middle((run) => run.serverCores),
      2,
    ),
    figure(
      middle((run) => run.generatorCores),
      2,
    ),
    figure(
      middle((run) => run.otherCores),
      2,
    ),
    megabytes(middle((run) => run.residentBytes)),
    megabytes(middle((run) => run.peakResidentBytes)),
    figure(middle((run) => run.diskBytesPerRow)),
    String(sum((run) => run.answered)),
    isChecked ? String(sum((run) => run.missing ?? 0)) : '-',
  ];
}
