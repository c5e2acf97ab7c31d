/** `earshot status`: whether all is well, on one screen. */

import {
  type Config,
  comparisonOff,
  type DataConfig,
  dataSections,
  loadConfig,
  type ServeConfig,
  serveSections,
} from '../../config/config.ts';
import { type ConfigProblem, problemsOf, refuseProblems } from '../../config/load.ts';
import { loadEachSink } from '../../config/sinks.ts';
import { summaryModeOf } from '../../config/summary-rules.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import {
  isWell,
  type PartStatus,
  type ReceiverStatus,
  type Status,
  statusLevels,
  statusParts,
  toStatusJson,
} from '../../domain/status.ts';
import { printable } from '../../domain/text.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import type { StoreReader } from '../../store/store.ts';
import type { DeliveryState } from '../../watch/situation.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import type { Io } from '../io.ts';
import { createLogger } from '../logger.ts';
import { painter, wrapText, writeOut } from '../output.ts';
import {
  findRunning,
  isSameListener,
  probeReceiver,
  type RunningNote,
  runningText,
} from '../running-receiver.ts';
import { watchProbes } from '../start/watch-probes.ts';
import { gatherStatus, type StatusSources } from '../status/gather-status.ts';

export const statusCommand = defineCommand('status', {
  description: 'Show whether all is well, on one screen, and what to do when it is not.',
  flags: (command) =>
    command
      .option('--json', 'as JSON: see below')
      .option('--check', 'exit with 3 when something is not well'),
  help: `The first line says whether all is well, or what is wrong most. Then a line for each part: receiver,
log, subscriptions, certificate, coverage of the last seven days, what reads the log, sinks,
summaries, disk, backup, alerts. A part that is not well has a mark, and its next step.

Works whether the receiver runs or not: it reads the data directory, and asks the receiver on this
machine whether it takes notifications, which needs its settings. Problems of these are listed last.
Active alerts are shown with their own text. Nothing is changed, and no other machine is asked.

--json: at version well parts failures receiver log subscriptions behindProxy certificate coverage
readers sinks summaries disk backups alerts; described in docs/reference/http.md. The same on
/api/status of the private listener, where the receiver itself tells.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 something is not well (--check).

Examples:
  $ earshot status
  $ earshot status --check > /dev/null || mail -s "earshot is not well" me@example.com
  $ earshot status --json | jq '.parts[] | select(.nextStep != null)'`,
  run: (io, flags: StatusFlags) => showStatus(io, { ...flags, version: io.version }),
});

interface StatusFlags {
  json?: true;
  check?: true;
}

/** A receiver that runs leaves a mark each minute. */
const upMarkMaxUs = 120_000_000;

/**
 * Shows what it can of the data directory, also where other settings have problems, and then rejects with
 * `configuration`. With `check`, rejects with `differences` when something is not well.
 */
async function showStatus(
  io: Io,
  { json, check, version }: StatusFlags & { version: string },
): Promise<void> {
  // First: with a wrong folder, what its settings lack is no help.
  const place = loadConfig(io, dataSections);
  requireDatabase(place.dataDir);
  const settings = readSettings(io);
  const { problems } = settings;
  await withParts(io, ['reader'], async ({ reader: store }) => {
    await refuseUnusable(store);
    const sources = await sourcesOf(io, { ...place, ...settings, store, version });
    const status = await gatherStatus(sources);
    await writeOut(io.stdout, json ? jsonOf(status, io) : printStatus(status, io));
    refuseProblems(problems);
    if (check && !isWell(status)) throw new AppError('differences', headline(status));
  });
}

/** Undefined is what cannot be read; `problems` has the reasons. */
function readSettings(io: Io) {
  const problems: ConfigProblem[] = [];
  const attempt = <Section extends keyof Config>(names: readonly Section[]) => {
    try {
      return loadConfig(io, names);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      problems.push(...problemsOf(error));
      return undefined;
    }
  };
  const serve = attempt(serveSections);
  const summary = attempt(['summary'])?.summary;
  const backup = attempt(['backup'])?.backup;
  const comparison = attempt(['reconcile', 'index']);
  return { serve, summary, backup, comparison, problems };
}

type Settings = ReturnType<typeof readSettings> & DataConfig;

async function sourcesOf(
  io: Io,
  settings: Settings & { store: StoreReader; version: string },
): Promise<StatusSources> {
  const { serve, summary, backup, comparison, store, version, ...place } = settings;
  const { dataDir } = place;
  const deliveryState = await sinksOf(io.workingDir);
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
    backgroundJobs: () => ({
      version,
      deliveryState: () => deliveryState,
      summaryMode: () => (summary === undefined ? unset() : summaryModeOf(summary, io.workingDir)),
      backupEveryHours: (backup?.folder ?? null) === null ? null : (backup?.everyHours ?? null),
      comparisonOff: comparison === undefined ? unreadable : comparisonOff(comparison),
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
async function sinksOf(workingDir: string): Promise<DeliveryState> {
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
  const [pair] = credentials.pairs.slice(-1);
  if (pair === undefined) throw new AppError('internal', 'There are no endpoint credentials.');
  const secure = tls.kind !== 'off';
  const { state, reason } = await probeReceiver({ listen, secure, credentials: pair }, signal);
  const running = await findRunning(dataDir);
  if (state === 'absent') {
    if (running === null) return null;
    throw servedElsewhere(running);
  }
  if (state === 'unclear') throw new AppError('unavailable', sentence(reason));
  const now = nowUs();
  const up = (await completeness.uptimes(now - upMarkMaxUs)).at(-1);
  const refusing = state === 'accepting' ? null : sentence(reason);
  const own = isSameListener(running ?? 'unknown', listen) ? running : null;
  const { pid, startedAtUs } =
    own === null || own === 'unknown' ? { pid: null, startedAtUs: up?.fromUs ?? null } : own;
  return { startedAtUs, pid, refusing, queue: null };
}

function servedElsewhere(running: RunningNote | 'unknown'): AppError {
  return new AppError(
    'unavailable',
    `Nothing listens at EARSHOT_LISTEN, but a receiver uses this data directory: ${runningText(running)}.`,
    { advice: 'Run this command with the settings of that receiver.' },
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

const columnsMax = 100;

/** How a level shows beside its part. */
const looks = {
  well: { mark: '  ', style: 'green' },
  unused: { mark: '  ', style: 'dim' },
  warning: { mark: '! ', style: 'yellow' },
  critical: { mark: '!!', style: 'red' },
} as const satisfies Record<PartStatus['level'], object>;

const nameWidth = Math.max(...statusParts.map(({ length }) => length));

const indent = ' '.repeat('!! '.length + nameWidth + 2);

/** That all is well, or what is wrong most. */
function headline(status: Pick<Status, 'parts'>): string {
  if (isWell(status)) return 'All is well.';
  const [worst, ...others] = worstFirst(status);
  const also = others.filter(({ part }) => part !== 'alerts').map(({ part }) => part);
  const rest = also.length === 0 ? '' : ` Also not well: ${also.join(', ')}.`;
  return `Not all is well: ${worst?.text ?? ''}${rest}`;
}

function worstFirst({ parts }: Pick<Status, 'parts'>): PartStatus[] {
  const rank = ({ level }: PartStatus) => statusLevels.indexOf(level);
  return parts
    .filter(({ level }) => level === 'warning' || level === 'critical')
    .toSorted((a, b) => rank(b) - rank(a));
}

/** The headline, and a line for each part; of one that is not well, its next step below it. */
export function printStatus(status: Status, io: Pick<Io, 'stdout' | 'env'>): string {
  const { isTTY, columns = columnsMax } = io.stdout;
  const width = { isTTY, columns: Math.min(columns, columnsMax) };
  const paint = painter(io, io.stdout);
  const wrapped = (text: string, margin = indent) =>
    wrapText(asCalled(printable(text), io), margin, width);
  const { style: headStyle } = looks[worstFirst(status)[0]?.level ?? 'well'];
  const head = wrapped(headline(status), '').map((line) => paint(headStyle, line));
  const lines = status.parts.flatMap(({ part, level, text, nextStep }) => {
    const { mark, style } = looks[level];
    const [first = '', ...more] = wrapped(text);
    const label = paint(style, `${mark} ${part.padEnd(nameWidth)}`);
    const next = nextStep === null ? [] : wrapped(`Next: ${nextStep}`);
    return [`${label}  ${first.slice(indent.length)}`, ...more, ...next];
  });
  return `${[...head, '', ...lines].join('\n')}\n`;
}
