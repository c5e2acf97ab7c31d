/** What `earshot status` does: reads the data directory, asks the receiver, and prints how all stands. */
import { readBackupConfig } from '../../config/backup-config.ts';
import { readCoverageConfig } from '../../config/completeness-config.ts';
import {
  type DataConfig,
  readDataConfig,
  readServeConfig,
  type ServeConfig,
} from '../../config/read-config.ts';
import { refuseProblems } from '../../config/read-variables.ts';
import { loadEachSink } from '../../config/sinks-config.ts';
import { readSummaryConfig } from '../../config/summary-config.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { ReceiverStatus, Status } from '../../domain/status.ts';
import { isWell, toStatusJson } from '../../domain/status-json.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import { askReceiver } from '../ask-receiver.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { findRunning, isSameListener, type RunningNote, runningText } from '../running-receiver.ts';
import { summaryModeOf } from '../summaries/summary-mode.ts';
import { watchProbes } from '../watch-probes.ts';
import { writeOut } from '../write-out.ts';
import { gatherStatus } from './gather-status.ts';
import { headline, printStatus } from './print-status.ts';
import type { StatusSources } from './status-sources.ts';

export interface StatusFlags {
  json?: true;
  check?: true;
}

/** A receiver that runs leaves a mark each minute. */
const upMarkMaxUs = 120_000_000;

/**
 * Shows what it can of the data directory, also where other settings have problems, and then rejects with
 * `configuration`. With `check`, rejects with `differences` when something is not well.
 */
export async function showStatus(
  io: Io,
  { json, check, version }: StatusFlags & { version: string },
): Promise<void> {
  // First: with a wrong folder, what its settings lack is no help.
  const place = readDataConfig(io);
  requireDatabase(place.dataDir);
  const settings = readSettings(io);
  const { problems } = settings;
  const store = openStoreReader(place.dataDir);
  try {
    await refuseUnusable(store);
    const sources = await sourcesOf(io, { ...place, ...settings, store, version });
    const status = await gatherStatus(sources);
    await writeOut(io.stdout, json ? jsonOf(status, io) : printStatus(status, io));
    refuseProblems(problems);
    if (check && !isWell(status)) throw new AppError('differences', headline(status));
  } finally {
    await store.close();
  }
}

/** Undefined is what cannot be read; `problems` has the reasons. */
function readSettings(io: Io) {
  const problems = new Set<string>();
  const attempt = <Value>(read: (environment: Io) => Value): Value | undefined => {
    try {
      return read(io);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      for (const detail of error.details) problems.add(detail);
      return undefined;
    }
  };
  const serve = attempt(readServeConfig);
  const summary = attempt(readSummaryConfig);
  const backup = attempt(readBackupConfig);
  const comparison = attempt(readCoverageConfig);
  return { serve, summary, backup, comparison, problems: [...problems] };
}

type Settings = ReturnType<typeof readSettings> & DataConfig;

async function sourcesOf(
  io: Io,
  settings: Settings & { store: StoreReader; version: string },
): Promise<StatusSources> {
  const { serve, summary, backup, comparison, store, version, ...place } = settings;
  const { dataDir } = place;
  const handingOver = await sinksOf(io.workingDir);
  // Without the certificate's settings, the disk is all that can be checked.
  const tls = serve?.tls ?? { kind: 'off' };
  // Nothing is written: whether that works is asked of the receiver.
  const probes = watchProbes({ ...place, tls }, { checkWritable: async () => undefined }, io);
  const unset = async () => Promise.reject(new AppError('configuration', unreadable));
  return {
    ...{ store, dataDir, nowUs: io.nowUs },
    index: serve?.index ?? true,
    behindProxy: serve?.tls.kind === 'off',
    probes: serve === undefined ? { ...probes, certificate: unset } : probes,
    receiver: serve === undefined ? unset : () => receiverOf(serve, store, io),
    beside: () => ({
      version,
      handingOver: () => handingOver,
      summaryMode: () => (summary === undefined ? unset() : summaryModeOf(summary, io.workingDir)),
      backupEveryHours: (backup?.folder ?? null) === null ? null : (backup?.everyHours ?? null),
      comparisonOff: comparison === undefined ? unreadable : comparison.comparisonOff,
    }),
    log: createLogger(io, serve?.logLevel ?? 'info'),
  };
}

const unreadable = 'The settings for it have problems, listed below.';

/** Programs get the text as it is; a terminal must not be steered by errors of others, which are in it. */
function jsonOf(status: Status, { stdout }: Pick<Io, 'stdout'>): string {
  const lines = JSON.stringify(toStatusJson(status), null, 2).split('\n');
  return `${(stdout.isTTY ? lines.map(printable) : lines).join('\n')}\n`;
}

/** A data directory that is none, or another program's, is a mistake to be told at once. */
async function refuseUnusable(store: Pick<StoreReader, 'lastPosition'>): Promise<void> {
  await store.lastPosition().catch((error: unknown) => {
    if (isAppError(error, 'configuration')) throw error;
  });
}

/** As the receiver would set them up. */
async function sinksOf(workingDir: string): Promise<HandingOver> {
  try {
    const { definitions, faulty } = await loadEachSink(workingDir);
    const names = [...definitions, ...faulty].map(({ name }) => name);
    const faults = new Map(faulty.map(({ name, problems }) => [name, problems.join(' ')]));
    return { names, faults, fault: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const rejected = [errorText(error), ...error.details].join(' ');
    return { names: null, fault: null, rejected };
  }
}

/** Null when none runs. Rejects with `unavailable` when the receiver that runs is not the one of these settings. */
async function receiverOf(
  { dataDir, listen, tls, credentials }: ServeConfig,
  { completeness }: Pick<StoreReader, 'completeness'>,
  { signal, nowUs }: Pick<Io, 'signal' | 'nowUs'>,
): Promise<ReceiverStatus | null> {
  const [pair] = credentials.slice(-1);
  if (pair === undefined) throw new AppError('internal', 'There are no endpoint credentials.');
  const secure = tls.kind !== 'off';
  const { state, reason } = await askReceiver({ listen, secure, credentials: pair }, signal);
  const running = await findRunning(dataDir);
  if (state === 'absent') {
    if (running === null) return null;
    throw servedElsewhere(running);
  }
  if (state === 'unclear') throw new AppError('unavailable', sentence(reason));
  const now = nowUs();
  const up = (await completeness.uptimes(now - upMarkMaxUs)).at(-1);
  const refusing = state === 'takes' ? null : sentence(reason);
  const own = isSameListener(running ?? 'unknown', listen) ? running : null;
  const { pid, startedAtUs } =
    own === null || own === 'unknown' ? { pid: null, startedAtUs: up?.fromUs ?? null } : own;
  return { startedAtUs, pid, refusing, queue: null };
}

function servedElsewhere(running: RunningNote | 'unknown'): AppError {
  return new AppError(
    'unavailable',
    `Nothing listens at EARSHOT_LISTEN, but a receiver serves this data directory: ${runningText(running)}.`,
    { advice: 'Run this with its settings.' },
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
