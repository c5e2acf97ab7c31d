/** `earshot status`: shows the state of all parts on one screen. */

import { needsEndpoint } from '../../admin/subscription-ways.ts';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createLogger } from '../../core/cli/logger.ts';
import { printJson, writeOut } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import {
  type DataConfig,
  loadConfig,
  loadServed,
  type ServeConfig,
} from '../../core/config/config.ts';
import { type ConfigProblem, problemsOf, refuseProblems } from '../../core/config/load.ts';
import { localUrl } from '../../core/http/network-address.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import * as report from '../../core/terms/report.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { openConfiguredLog } from '../../store/open-configured.ts';
import type { StoreReader } from '../../store/store.ts';
import { watchProbes } from '../alerts/watch-probes.ts';
import { comparisonOff } from '../coverage/settings.ts';
import { readDeliveryState } from '../sinks/definitions.ts';
import { summaryModeOf } from '../summary/rules.ts';
import type { SharedReceivers } from './probes.ts';
import { gatherStatus, type StatusSources } from './read-status.ts';
import {
  findRunning,
  isSameListener,
  type ProbedAddress,
  probeReceiver,
  type RunningNote,
  runningText,
} from './running-receiver.ts';
import {
  headline,
  isOk,
  type ReceiverStatus,
  type Status,
  toStatusJson,
  worstFirst,
} from './status.ts';

export const statusCommand = defineCommand('status', {
  description: 'Show the state of all parts on one screen, with advice for each problem.',
  flags: (command) =>
    command
      .addOption(jsonOption())
      .option('--check', 'exit with code 3 if there is a problem (in any part)'),
  help: `The first line shows the overall state, or the most severe problem. The other lines show one part
each: receiver, log, subscriptions, certificate, coverage of the last seven days, readers, sinks,
summaries, disk, backup, alerts. A part with a problem has a mark and a next step.

The command works with and without a running receiver. The command reads the data directory and
sends a request to the receiver on this machine. The command changes nothing and contacts no other
machine.

Fields of --json: those of /api/status of the private listener (docs/reference/http.md). The field
ok is true if no part has a problem.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a part has a problem (--check).

Examples:
  $ earshot status                                                        all parts
  $ earshot status --check > /dev/null || mail -s "earshot problem" me@example.com    send mail
  $ earshot status --json | jq '.parts[] | select(.nextStep != null)'     parts with problems`,
  run: (io, flags: StatusFlags) => showStatus(io, { ...flags, version: io.version }),
});

interface StatusFlags {
  json?: true;
  check?: true;
}

/** Maximum age of the last heartbeat of a running receiver, which records one each minute. */
const heartbeatMaxAgeUs = 120_000_000;

/**
 * Shows the state of the data directory even if other settings have problems, and then rejects with `configuration`.
 * With `check`, rejects with `differences` if a part has a problem.
 */
async function showStatus(
  io: Io,
  { json, check, version }: StatusFlags & { version: string },
): Promise<void> {
  // First, because problems of other settings are irrelevant with a wrong data directory.
  const place = loadConfig(io, ['data']);
  requireDatabase(place.dataDir);
  await withParts(io, ['reader'], async ({ reader: store }) => {
    const usable = refuseUnusable(store);
    // Read while the query thread starts.
    const settings = readSettings(io, await needsEndpoint(io));
    await usable;
    const { problems } = settings;
    const sources = await sourcesOf(io, { ...place, ...settings, store, version });
    const status = await gatherStatus(sources);
    if (json) await printJson(io.stdout, toStatusJson(status));
    else {
      await printReport(io, statusReport(status));
      await writeOut(io.stdout, pageLine(status, settings.serve));
    }
    refuseProblems(problems);
    if (check && !isOk(status)) throw new AppError('differences', headline(status));
  });
}

/** Returns the address of the web page of a running receiver; nothing without one. */
function pageLine({ receiver }: Status, serve: ServeConfig | undefined): string {
  const { host = '', port = 0 } = serve?.console?.listen ?? {};
  if (receiver === null || port === 0) return '';
  return `\nWeb page: ${localUrl({ host, port })}/\n`;
}

/** Reads all settings. Invalid sections are undefined, with the reasons in `problems`. */
function readSettings(io: Io, hasEndpoint: boolean) {
  const problems: ConfigProblem[] = [];
  const attempt = <Loaded>(load: () => Loaded) => {
    try {
      return load();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      problems.push(...problemsOf(error));
      return undefined;
    }
  };
  const serve = attempt(() => loadServed(io, 'serve', { hasEndpoint }));
  const summary = attempt(() => loadConfig(io, ['summary']))?.summary;
  const backup = attempt(() => loadConfig(io, ['backup']))?.backup;
  const comparison = attempt(() => loadConfig(io, ['reconcile', 'index']));
  return { serve, summary, backup, comparison, problems };
}

type Settings = ReturnType<typeof readSettings> & DataConfig;

async function sourcesOf(
  io: Io,
  settings: Settings & { store: StoreReader; version: string },
): Promise<StatusSources> {
  const { serve, summary, backup, comparison, store, version, ...place } = settings;
  const { dataDir } = place;
  const deliveryState = await readDeliveryState(io);
  // Without the certificate's settings, only the disk can be checked.
  const tls = serve?.tls ?? { kind: 'off' };
  // No write probe: status changes nothing, and the receiver reports if it can write.
  const probes = {
    ...watchProbes({ ...place, tls }, { checkWritable: async () => undefined }),
    receivers: () => sharedReceivers(place, store, io),
  };
  const unset = async () => Promise.reject(new AppError('configuration', unreadable));
  return {
    ...{ store, dataDir, nowUs: io.nowUs },
    index: serve?.index ?? true,
    hasEndpoint: serve?.listen !== null,
    behindProxy: serve?.listen !== null && serve?.tls.kind === 'off',
    probes: serve === undefined ? { ...probes, certificate: unset } : probes,
    receiver: serve === undefined ? unset : () => receiverOf(serve, store, io),
    backgroundJobs: () => ({
      version,
      deliveryState: () => deliveryState,
      summaryMode: () => (summary === undefined ? unset() : summaryModeOf(summary, io)),
      backupEveryHours: (backup?.folder ?? null) === null ? null : (backup?.everyHours ?? null),
      comparisonOff: comparison === undefined ? unreadable : comparisonOff(comparison),
    }),
    log: createLogger(io, serve?.logLevel ?? 'info'),
  };
}

/** Reads the reports of all receivers of the shared log; null for a log of its own. */
async function sharedReceivers(
  { sharedLog }: Pick<DataConfig, 'sharedLog'>,
  store: Pick<StoreReader, 'nodeId'>,
  io: Io,
): Promise<SharedReceivers | null> {
  const ownId = sharedLog === null ? null : await store.nodeId();
  if (ownId === null) return null;
  const log = await openConfiguredLog({ sharedLog }, io, ownId);
  try {
    return { ownId, nodes: await log.nodes() };
  } finally {
    await log.close();
  }
}

const unreadable = 'The settings have problems, listed below.';

/** Rejects immediately for a folder that is not a data directory of earshot. */
async function refuseUnusable(store: Pick<StoreReader, 'lastPosition'>): Promise<void> {
  await store.lastPosition().catch((error: unknown) => {
    if (isAppError(error, 'configuration')) throw error;
  });
}

/** State of the receiver; null without one. Rejects with `unavailable` if the running receiver has other settings. */
async function receiverOf(
  serve: ServeConfig,
  { completeness }: Pick<StoreReader, 'completeness'>,
  { signal, nowUs }: Pick<Io, 'signal' | 'nowUs'>,
): Promise<ReceiverStatus | null> {
  const { dataDir, listen } = serve;
  const address = probedAddress(serve);
  // Without any listener, only the lock shows that a receiver runs.
  const { state, reason } = address === null ? unlistening : await probeReceiver(address, signal);
  // A receiver that answers keeps its lock, so waiting would be useless.
  const running = await findRunning(dataDir, state === 'absent' ? undefined : 0);
  if (state === 'absent') {
    if (running === null) return null;
    if (address !== null) throw servedElsewhere(running, listen === null);
  }
  if (state === 'unclear') throw new AppError('unavailable', sentence(reason));
  const now = nowUs();
  const up = (await completeness.uptimes(now - heartbeatMaxAgeUs)).at(-1);
  const refusing = state === 'refusing' ? sentence(reason) : null;
  const own = isSameListener(running ?? 'unknown', listen) ? running : null;
  const { pid, startedAtUs } =
    own === null || own === 'unknown' ? { pid: null, startedAtUs: up?.fromUs ?? null } : own;
  return { startedAtUs, pid, refusing, queue: null };
}

const unlistening = { state: 'absent', reason: '' } as const;

/** Returns the private listener of a receiver that only reads queues; null without one. */
function probedAddress({
  listen,
  tls,
  credentials,
  console,
}: Pick<ServeConfig, 'listen' | 'tls' | 'credentials' | 'console'>): ProbedAddress | null {
  if (listen !== null) {
    return { listen, secure: tls.kind !== 'off', credentials: credentials.pairs.at(-1) ?? null };
  }
  return console === null ? null : { listen: console.listen, secure: false, credentials: null };
}

function servedElsewhere(running: RunningNote | 'unknown', onlyReads: boolean): AppError {
  const variable = onlyReads ? 'EARSHOT_CONSOLE_LISTEN' : 'EARSHOT_LISTEN';
  return new AppError(
    'unavailable',
    `Nothing listens at ${variable}, but a receiver uses this data directory: ${runningText(running)}.`,
    { advice: 'Run the command with the settings of that receiver.' },
  );
}

const sentence = (text: string) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Formats the headline and an evaluation of each part. */
export function statusReport(status: Pick<Status, 'parts'>): report.Report {
  const rows = status.parts.map(({ part, ...evaluation }) => [part, evaluation] as const);
  return {
    title: 'Status',
    blocks: [
      report.text(headline(status), worstFirst(status)[0]?.level ?? 'ok'),
      report.evaluations(rows, { all: true }),
    ],
  };
}
