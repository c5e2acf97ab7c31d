/** `earshot status`: shows the state of all parts on one screen. */
import { needsEndpoint } from '../../admin/settings.ts';
import { type CommandContext, defineCommand } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createLogger } from '../../core/cli/logger.ts';
import { printJson, writeOut } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import {
  checkConfig,
  checkServed,
  loadConfig,
  type StartConfig,
} from '../../core/config/config.ts';
import { refuseProblems } from '../../core/config/load.ts';
import { localUrl } from '../../core/http/network-address.ts';
import {
  createGather,
  headline,
  isOk,
  loadStatusParts,
  type ReceiverStatus,
  type Status,
  type StatusSources,
  toStatusJson,
  worstFirst,
} from '../../core/status/status.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import * as report from '../../core/terms/report.ts';
import { findRunning, type RunningNote, refusalOf } from '../../receiver/running-receiver.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { openReaderHere, type StoreReader } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import { heartbeatMaxAgeUs } from '../coverage/completeness.ts';

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
sends a request to the private listener of the receiver on this machine. The command changes nothing and contacts no other
machine.

Fields of --json: those of /api/status of the private listener (docs/reference/http.md). The field
ok is true if no part has a problem.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 a part has a problem (--check).

Examples:
  $ earshot status                                                        all parts
  $ earshot status --check > /dev/null || mail -s "earshot problem" me@example.com    send mail
  $ earshot status --json | jq '.parts[] | select(.nextStep != null)'     parts with problems`,
  run: showStatus,
});

interface StatusFlags {
  json?: true;
  check?: true;
}

/**
 * Shows the state of the data directory even if other settings have problems, and then rejects with `configuration`.
 * With `check`, rejects with `differences` if a part has a problem.
 */
async function showStatus(
  io: Io & Pick<CommandContext, 'version'>,
  { json, check }: StatusFlags,
): Promise<void> {
  // First, because problems of other settings are irrelevant with a wrong data directory.
  const place = loadConfig(io, ['data']);
  requireDatabase(place.dataDir);
  const store = await openReaderHere(place.dataDir, tablesOf(io.features));
  try {
    await refuseUnusable(store);
    const settings = await readSettings(io);
    const parts = await loadStatusParts(io.features);
    const status = await createGather(parts, sourcesOf(io, settings, store))();
    if (json) await printJson(io.stdout, toStatusJson(parts, status));
    else {
      await printReport(io, statusReport(status));
      await writeOut(io.stdout, pageLine(status, settings.config));
    }
    refuseProblems(settings.problems);
    if (check && !isOk(status)) throw new AppError('differences', headline(status));
  } finally {
    await store.close();
  }
}

/** Returns the address of the web page of a running receiver; nothing without one. */
function pageLine({ receiver }: Status, { console }: Settings['config']): string {
  const { host = '', port = 0 } = console?.listen ?? {};
  if (receiver === null || port === 0) return '';
  return `\nWeb page: ${localUrl({ host, port })}/\n`;
}

/** Returns the valid settings, and the problems of the others. Without an endpoint, some are not needed. */
async function readSettings(io: Io) {
  const { config, problems } = checkServed(io, needsEndpoint(io));
  const setting: StatusSources['setting'] = (name) => {
    const value = config[name];
    // An optional setting is present, and undefined.
    if (value === undefined && !(name in config)) throw new AppError('configuration', unreadable);
    return value as StartConfig[typeof name];
  };
  return { config, problems, setting };
}

type Settings = Awaited<ReturnType<typeof readSettings>>;

function sourcesOf(
  io: Io & Pick<CommandContext, 'version'>,
  { config, setting }: Settings,
  store: StoreReader,
): StatusSources {
  return {
    ...{ store, setting, version: io.version, io, running: null },
    receiver: () => receiverOf(setting, store, io),
    log: createLogger(io, config.logLevel ?? 'info'),
  };
}

const unreadable = 'The settings have problems, listed below.';

/** Rejects immediately for a folder that is not a data directory of earshot. */
async function refuseUnusable(store: Pick<StoreReader, 'lastPosition'>): Promise<void> {
  await store.lastPosition().catch((error: unknown) => {
    if (isAppError(error, 'configuration')) throw error;
  });
}

/** State of the receiver; null without one. */
async function receiverOf(
  setting: StatusSources['setting'],
  { completeness }: Pick<StoreReader, 'completeness'>,
  io: Io,
): Promise<ReceiverStatus | null> {
  const running = await findRunning(setting('dataDir'));
  if (running === null) return null;
  const refusing = await refusalOf(consoleUrlOf(running, io), io);
  if (running !== 'unknown') {
    const { startedAtUs, pid } = running;
    return { startedAtUs, pid, refusing, queue: null };
  }
  const up = (await completeness.uptimes(io.nowUs() - heartbeatMaxAgeUs)).at(-1);
  return { startedAtUs: up?.fromUs ?? null, pid: null, refusing, queue: null };
}

/** Returns the private listener of the receiver; if its file is missing, that of the settings. Null without one. */
function consoleUrlOf(running: RunningNote | 'unknown', io: Io): string | null {
  if (running !== 'unknown') return running.consoleUrl;
  const listen = checkConfig(io, ['console']).config.console?.listen;
  return listen === undefined || listen.port === 0 ? null : localUrl(listen);
}

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

export const healthCommand = defineCommand('health', {
  description: 'Check if the receiver on this machine can store notifications now.',
  help: `Use the command for health checks of containers, and in scripts. The command finds the receiver of the
data directory, and asks its private listener (EARSHOT_CONSOLE_LISTEN), which reports success if a
commit to disk succeeded in the last few seconds. Without a private listener, the command only
checks that the receiver runs. For all other checks, run \`earshot doctor\`.

Exit codes: 0 healthy, 1 not healthy (reason on standard error), 2 wrong usage or configuration.

Examples:
  $ earshot admin health    print the state
  $ docker exec earshot earshot admin health > /dev/null    use the exit code, in a container
  $ until earshot admin health; do sleep 2; done    wait until the receiver accepts notifications`,
  run: async (io) => {
    const { dataDir } = loadConfig(io, ['dataDir']);
    const running = await findRunning(dataDir);
    if (running === null) {
      throw new AppError('unavailable', `No receiver uses ${dataDir}.`, {
        advice: 'Start the receiver with `earshot start`.',
      });
    }
    const consoleUrl = consoleUrlOf(running, io);
    if (
      consoleUrl === null &&
      running === 'unknown' &&
      checkConfig(io, ['console']).config.console
    ) {
      throw new AppError('unavailable', 'The address of its private listener is not known.');
    }
    const refusal = await refusalOf(consoleUrl, io);
    if (refusal !== null) {
      throw new AppError('unavailable', `The receiver does not accept notifications. ${refusal}`);
    }
    const state =
      consoleUrl === null
        ? 'runs. Its private listener is off, so its state is not known.'
        : `accepts notifications (${consoleUrl}).`;
    io.stdout.write(`The receiver ${state}\n`);
  },
});
