/** One run: load on one running server, its memory watched meanwhile, its file checked afterwards; and several in turn. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import Database from 'better-sqlite3';
import { alignTable, figure, median, megabytes, type Spread, spreadOf } from './figures.ts';
import { type BenchContext, number, whole } from './harness.ts';
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

/** The options of every benchmark that loads a server. */
export const loadOptions = {
  rounds: whole('N', 'rounds; each figure is the median of them', {
    ...{ usual: 5, quick: 1, min: 1, max: 1_000 },
  }),
  seconds: number('S', 'measured time of one server, or of one state of it, in one round', {
    ...{ usual: 8, quick: 2, min: 0.1, max: 600 },
  }),
  'warm-up-seconds': number('S', 'load before that, not measured', {
    ...{ usual: 2, quick: 1, min: 0.1, max: 600 },
  }),
  connections: whole('N', 'keep-alive connections, one request in flight on each', {
    ...{ usual: 64, min: 1, max: 10_000 },
  }),
} as const;

/** What is the same for every run of a benchmark. */
export interface BenchSetting extends Pick<BenchContext, 'cleanup' | 'progress' | 'folder'> {
  readonly endpoint: Endpoint;
  readonly ackIdForm: AckIdForm;
  readonly connections: number;
  readonly rounds: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  /** Different bodies that are sent in turn; the usual number unless told. */
  readonly templateCount?: number;
  /** A number below 65,536 that no other run has. */
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

/** The figures of one run. Those that do not apply, or cannot be read on this system, are null. */
export interface RunFigures extends Omit<LoadResult, 'answered'> {
  readonly server: ServerName;
  /** Most resident memory seen while the load ran, bytes. */
  readonly residentBytes: number | null;
  /** Most resident memory since the server started, bytes. */
  readonly peakResidentBytes: number | null;
  /** Notifications answered with 200, warm-up included. */
  readonly answered: number;
  readonly missing: number | null;
  readonly repeated: number | null;
  /** Rows in the file at the end. */
  readonly rows: number | null;
  readonly diskBytesPerRow: number | null;
}

const sampleIntervalMs = 100;

/** What a run does beside the load. */
export interface RunSteps {
  /** Variables of earshot beside those that every run has. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Called before the load. */
  readonly prepare?: (running: RunningServer) => Promise<void>;
  /** Called when the load has ended and the server still runs. */
  readonly loaded?: () => void;
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
  loaded?.();
  await running.stop();
  return {
    server,
    ...load,
    residentBytes:
      memory.length === 0 ? null : Math.max(...memory.map(({ residentBytes }) => residentBytes)),
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    answered: answered.reduce((sum, [first, last]) => sum + last - first + 1, 0),
    ...(server === 'bare' ? nothingKept : verifyDatabase(databaseFile(dataFolder), run, answered)),
  };
}

/** What speaks against a run: lost or repeated notifications, other statuses, broken connections. */
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

async function applyLoad(
  setting: BenchSetting,
  server: RunningServer,
  run: number,
): Promise<LoadResult> {
  const { endpoint, ackIdForm, connections, warmUpMs, measureMs } = setting;
  const { authorityPem, username, password } = endpoint;
  const job: LoadJob = {
    ...{ host: '127.0.0.1', port: server.port, path: '/notifications/bench' },
    ...{ authorityPem, username, password, ackIdForm, connections, warmUpMs, measureMs, run },
    templateCount: Math.max(setting.templateCount ?? templateCounts.usual, connections),
    serverProcessId: server.processId,
  };
  const child = spawn(process.execPath, [join(import.meta.dirname, 'load.ts')]);
  setting.cleanup.ownProcess(child);
  // A generator that ended before it read its job is reported by its exit code.
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

type Kept = Pick<RunFigures, 'missing' | 'repeated' | 'rows' | 'diskBytesPerRow'>;
const nothingKept: Kept = { missing: null, repeated: null, rows: null, diskBytesPerRow: null };

/**
 * Reads a stopped server's file and looks for every answered notification of a run. Rows and bytes, of database and
 * write-ahead log together, include those of earlier runs. Throws when the file is no database of the expected shape.
 */
function verifyDatabase(file: string, run: number, answered: readonly SequenceRange[]): Kept {
  const bytes = sizeOf(file) + sizeOf(`${file}-wal`);
  const last = answered.at(-1)?.[1] ?? -1;
  const timesFound = new Uint32Array(last + 1);
  // Both stores name the table and the column alike.
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

/** What a function reads from a database file. */
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

/** What was measured in one round, for each of several states that were measured in turn. */
export type Round<State extends string, Measured = RunFigures> = Readonly<Record<State, Measured>>;

/**
 * Measures all states in each round, each on an empty data folder; each round begins with another one of them, and
 * goes on in their order, so that none has the better part of what else the machine does.
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

/** Requests per second in one state to those in another: of the rounds' ratios, where the machine was in one mood. */
export function speedRatios<State extends string>(
  rounds: readonly Round<NoInfer<State>>[],
  state: State,
  base: State,
): Spread | null {
  return spreadOf(
    rounds.map((round) => round[state].requestsPerSecond / round[base].requestsPerSecond),
  );
}

/** The median of the same. */
export function speedRatio<State extends string>(
  rounds: readonly Round<NoInfer<State>>[],
  state: State,
  base: State,
): number | null {
  return speedRatios(rounds, state, base)?.median ?? null;
}

/** All runs of all rounds. */
export function runsOf<State extends string>(
  rounds: readonly Round<State>[],
  states: readonly State[],
): RunFigures[] {
  return rounds.flatMap((round) => states.map((state) => round[state]));
}

/** A line for each state, each figure the median of the rounds. */
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
