/** What `earshot status` does: reads the data directory, asks the receiver, and prints how all stands. */
import { readBackupConfig } from '../../config/backup-config.ts';
import { comparisonOff, readWatchConfig } from '../../config/completeness-config.ts';
import { readAll, readServeConfig, type ServeConfig } from '../../config/read-config.ts';
import { loadEachSink } from '../../config/sinks-config.ts';
import { readSummaryConfig } from '../../config/summary-config.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { ReceiverStatus, Status } from '../../domain/status.ts';
import { isWell, toStatusJson } from '../../domain/status-json.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import { askReceiver } from '../ask-receiver.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { summaryModeOf } from '../summaries/summary-mode.ts';
import { watchProbes } from '../watch-probes.ts';
import { writeOut } from '../write-out.ts';
import { gatherStatus } from './gather-status.ts';
import { headline, printStatus } from './print-status.ts';

export interface StatusFlags {
  json?: true;
  check?: true;
}

/** A receiver that runs leaves a mark each minute. */
const upMarkMaxUs = 120_000_000;

/** With `check`, rejects with `differences` when something is not well. */
export async function showStatus(
  io: Io,
  { json, check, version }: StatusFlags & { version: string },
): Promise<void> {
  const [serve, summary, backup, watch] = readAll(
    () => readServeConfig(io),
    () => readSummaryConfig(io),
    () => readBackupConfig(io),
    () => readWatchConfig(io),
  );
  const store = openStoreReader(serve.dataDir);
  try {
    await refuseUnusable(store);
    const handingOver = await sinksOf(io.workingDir);
    const { nowUs } = io;
    const status = await gatherStatus({
      store,
      dataDir: serve.dataDir,
      index: serve.index,
      behindProxy: serve.tls.kind === 'off',
      // Nothing is written: whether that works is asked of the receiver.
      probes: watchProbes(serve, { checkWritable: async () => undefined }, io),
      receiver: () => receiverOf(serve, store, io),
      beside: () => ({
        version,
        handingOver: () => handingOver,
        summaryMode: () => summaryModeOf(summary, io.workingDir),
        backupEveryHours: backup.folder === null ? null : backup.everyHours,
        comparisonOff: comparisonOff({ ...watch, ...serve }),
      }),
      nowUs,
      log: createLogger(io, serve.logLevel),
    });
    await writeOut(io.stdout, json ? jsonOf(status, io) : printStatus(status, io));
    if (check && !isWell(status)) throw new AppError('differences', headline(status));
  } finally {
    await store.close();
  }
}

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
    const rejected = [error.message, ...error.details].join(' ');
    return { names: null, fault: null, rejected };
  }
}

/** Null when none runs. Rejects with `unavailable` when what answers is not the receiver of these settings. */
async function receiverOf(
  { listen, tls, credentials }: ServeConfig,
  { completeness }: Pick<StoreReader, 'completeness'>,
  { signal, nowUs }: Pick<Io, 'signal' | 'nowUs'>,
): Promise<ReceiverStatus | null> {
  const [pair] = credentials.slice(-1);
  if (pair === undefined) throw new AppError('internal', 'There are no endpoint credentials.');
  const secure = tls.kind !== 'off';
  const { state, reason } = await askReceiver({ listen, secure, credentials: pair }, signal);
  if (state === 'absent') return null;
  if (state === 'unclear') throw new AppError('unavailable', sentence(reason));
  const now = nowUs();
  const up = (await completeness.uptimes(now - upMarkMaxUs)).at(-1);
  const refusing = state === 'takes' ? null : sentence(reason);
  return { startedAtUs: up?.fromUs ?? null, refusing, queue: null };
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
