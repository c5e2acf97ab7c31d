/** `earshot alerts`: lists active and resolved alerts. */
import { loadConfig, watchSections } from '../../config/config.ts';
import {
  type Alert,
  type AlertDelivery,
  channelVariables,
  toAlertJson,
} from '../../domain/alerts.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { testMessage } from '../../watch/alert-message.ts';
import { channelsOf } from '../../watch/notify.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import { jsonOption, limitOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { painter, wrapText, writeJson, writeOut } from '../output.ts';
import { alertSenders } from '../start/watchdog.ts';

export const alertsCommand = defineCommand('alerts', {
  description: 'Show active alerts, each with cause and advice.',
  flags: (command) =>
    command
      .option('--all', 'select all (active and resolved alerts)')
      .addOption(limitOption().default(100))
      .addOption(jsonOption())
      .option('--test', 'send a test alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND'),
  help: `The receiver checks every minute for these problems:
  - A subscription is silent for an unusually long time, or is paused.
  - The catalogue will soon pause or delete a subscription.
  - Pushes were lost, events are missing, or a comparison failed.
  - The certificate, the disk, the database, the backup or a sink has a problem.
The receiver sends each new and each resolved alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND.
This command reports unsent alerts on standard error, and warns if no receiver is running.

Fields of --json: id, kind, subject, severity, cause, evidence, nextStep, raisedAt, resolvedAt,
channels. The subject is the affected subscription or sink. resolvedAt is null for an active alert.
channels lists the configured channels (url, command) when the alert was raised.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot alerts                      list active alerts
  $ earshot alerts --all --limit 20     list the last 20 alerts
  $ earshot alerts --test               test the notification channels`,
  run: (io, flags: AlertFlags) => (flags.test ? sendTest(io) : showAlerts(io, flags)),
});

interface AlertFlags {
  all?: boolean;
  limit: number;
  json?: true;
  test?: true;
}

/** Maximum age of the last heartbeat of a running receiver, which records one each minute. */
const heartbeatMaxAgeUs = 120_000_000;

function showAlerts(io: Io, { all = false, limit, json }: AlertFlags): Promise<void> {
  return withParts(io, ['reader'], async ({ reader: { alerts: stored, completeness } }) => {
    const alerts = await stored.alerts({ all, limit });
    if (json) await writeJson(io.stdout, alerts.map(toAlertJson));
    else await printAlerts(io, alerts, all);
    // In every format: otherwise an empty list could mean that nothing was checked or sent.
    await reportUnwatched(io, completeness);
    reportUnsent(io, await stored.unsentDeliveries(io.nowUs()));
  });
}

async function printAlerts(io: Io, alerts: readonly Alert[], all: boolean): Promise<void> {
  for (const [i, alert] of alerts.entries()) {
    await writeOut(io.stdout, `${i === 0 ? '' : '\n'}${paragraph(alert, io)}`);
  }
  if (alerts.length > 0) return;
  io.stderr.write(
    all ? 'No alerts.\n' : 'No active alerts. `earshot alerts --all` shows resolved alerts.\n',
  );
}

/** Warns if no receiver runs: without its watchdog, an empty list means nothing. */
async function reportUnwatched(
  { stderr, nowUs }: Pick<Io, 'stderr' | 'nowUs'>,
  completeness: Pick<CompletenessReader, 'uptimes'>,
): Promise<void> {
  const last = (await completeness.uptimes(0)).at(-1);
  if (last !== undefined && nowUs() - last.toUs <= heartbeatMaxAgeUs) return;
  const message =
    last === undefined
      ? 'No receiver has ever run on this data directory'
      : `No receiver has run since ${shortDateUs(last.toUs)} (UTC)`;
  stderr.write(`${message}, so nothing is checked. Start the receiver with \`earshot start\`.\n`);
}

/** Sends a test alert to every channel. Rejects with the failures. */
async function sendTest(io: Io): Promise<void> {
  const senders = alertSenders(loadConfig(io, watchSections), io);
  if (channelsOf(senders).length === 0) {
    throw new AppError('configuration', 'No notification channel is configured.', {
      advice: 'Set EARSHOT_ALERT_URL or EARSHOT_ALERT_COMMAND.',
    });
  }
  const message = testMessage(io.nowUs());
  const failures: AppError[] = [];
  for (const channel of channelsOf(senders)) {
    try {
      await senders[channel]?.(message, io.signal);
      io.stderr.write(`${channelVariables[channel]} accepted the test alert.\n`);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  if (first === undefined) return;
  throw first.with({ details: others.map(errorText) });
}

function paragraph(alert: Alert, io: Io): string {
  const paint = painter(io, io.stdout);
  const { severity, kind, subject, cause, evidence, nextStep, raisedAtUs, resolvedAtUs } = alert;
  const colour = resolvedAtUs !== null ? 'dim' : severity === 'critical' ? 'red' : 'yellow';
  const about = subject === '' ? kind : `${kind} of ${printable(subject)}`;
  const until = resolvedAtUs === null ? '' : `, resolved ${shortDateUs(resolvedAtUs)}`;
  const head = `${paint(colour, `${severity}: ${about}`)}  ${paint('dim', `since ${shortDateUs(raisedAtUs)}${until} (UTC)`)}`;
  const lines = [cause, ...evidence.map((line) => `- ${line}`), `Next: ${nextStep}`];
  return [
    head,
    ...lines.flatMap((line) => wrapText(asCalled(printable(line), io), '  ', io.stdout)),
    '',
  ].join('\n');
}

function reportUnsent(
  { stderr }: Pick<Io, 'stderr'>,
  unsentDeliveries: readonly (AlertDelivery & { isGivenUp: boolean })[],
): void {
  for (const { alert, channel, error, isGivenUp } of unsentDeliveries) {
    // Before its first attempt, a delivery has no error.
    if (error === null) continue;
    const state = isGivenUp ? 'not retried' : 'will be retried';
    stderr.write(
      `Failed to send alert ${alert.id} to ${channelVariables[channel]} (${state}): ${printable(error)}\n`,
    );
  }
}
