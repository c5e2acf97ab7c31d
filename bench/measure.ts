/** Runs load on one server, samples its memory, and checks its file afterwards; and alternates several runs. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { figure, inMegabytes, median, renderTable } from './figures.ts';
import { type BenchContext, integer, number, type Values } from './harness.ts';
import type { LoadJob, LoadResult, SequenceRange } from './load.ts';
import { meanBodyBytes, sequenceOf, templateCounts } from './notifications.ts';
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
  rounds: integer('number of rounds; figures are medians', 5, 1),
  seconds: number('measured time of one server or state in one round', 8, 2),
  'warm-up-seconds': number('load before the measurement', 2, 1),
  connections: integer('keep-alive connections, one request in flight on each', 64),
};

/** Setting shared by all runs of a benchmark. */
export interface BenchSetting extends BenchContext {
  readonly endpoint: Endpoint;
  readonly connections: number;
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Notifications per second; undefined: as many as possible. */
  readonly ratePerSecond?: number;
  /** Number of distinct bodies sent in turn (default: templateCounts.default). */
  readonly templateCount?: number;
  /** Description of the load. */
  readonly text: string;
  /** Returns a unique number below 65,536. */
  nextRun(): number;
}

export async function createSetting(
  chosen: Values<typeof loadOptions>,
  context: BenchContext,
): Promise<BenchSetting> {
  const { rounds, connections, seconds, 'warm-up-seconds': warmUpSeconds } = chosen;
  let runs = 0;
  return {
    ...{ ...context, connections, rounds },
    warmUpMs: warmUpSeconds * 1_000,
    measureMs: seconds * 1_000,
    endpoint: await createEndpoint(context.cleanup.temporaryFolder(context.folder)),
    text: `${connections} connections, bodies of ${figure(meanBodyBytes())} bytes, ${seconds} s after ${warmUpSeconds} s of warm-up; median of ${rounds} round(s)`,
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
  readonly diskBytesPerRow: number | null;
}

const sampleIntervalMs = 100;

/** Additional steps of a run. */
interface RunSteps {
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
  const { endpoint, connections, warmUpMs, measureMs } = setting;
  const { authorityPem, username, password } = endpoint;
  const job: LoadJob = {
    ...{ host: '127.0.0.1', port: server.port, path: '/notifications/bench' },
    ...{ authorityPem, username, password, connections, warmUpMs, measureMs, run },
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

type StoredCounts = Pick<RunFigures, 'missing' | 'repeated' | 'diskBytesPerRow'>;
const notStored: StoredCounts = { missing: null, repeated: null, diskBytesPerRow: null };

/**
 * Checks that a stopped server's database contains every answered notification of a run. Rows and bytes (database and
 * write-ahead log) include those of earlier runs. Throws if the file is not the expected database.
 */
export function verifyDatabase(
  file: string,
  run: number,
  answered: readonly SequenceRange[],
): StoredCounts {
  const bytes = [file, `${file}-wal`]
    .map((one) => statSync(one, { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, size) => sum + size, 0);
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
  return { missing, repeated, diskBytesPerRow: rows === 0 ? 0 : bytes / rows };
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

/** Returns the ratio of requests per second between two states: the median of the ratios of each round. */
export function speedRatio<State extends string>(
  rounds: readonly Round<NoInfer<State>>[],
  state: State,
  base: State,
): number | null {
  return median(
    rounds.map((round) => round[state].requestsPerSecond / round[base].requestsPerSecond),
  );
}

/** Formats a table with a row per state; figures are medians. */
export function renderRounds<State extends string>(
  what: string,
  states: readonly State[],
  rounds: readonly Round<State>[],
): string {
  const middle = (pick: (run: RunFigures) => number | null) => (state: State) =>
    median(rounds.map((round) => pick(round[state])));
  return renderTable(states, [
    [what, (state) => state],
    ['requests/s', middle((run) => run.requestsPerSecond)],
    ['p50 ms', middle((run) => run.p50Ms), 2],
    ['p99 ms', middle((run) => run.p99Ms), 2],
    ['max ms', middle((run) => run.maxMs), 1],
    ['server cores', middle((run) => run.serverCores), 2],
    ['other cores', middle((run) => run.otherCores), 2],
    ['MB', middle((run) => inMegabytes(run.residentBytes))],
    ['peak MB', middle((run) => inMegabytes(run.peakResidentBytes))],
    ['disk B/row', middle((run) => run.diskBytesPerRow)],
  ]);
}
