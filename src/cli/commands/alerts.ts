/** `earshot alerts`: what is wrong, or was. */
import { loadConfig, watchSections } from '../../config/config.ts';
import type { Alert, AlertDelivery } from '../../domain/alerts.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { testMessage } from '../../watch/alert-message.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, withParts } from '../command.ts';
import { limitOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { isoTime, painter, wrapText, writeJson, writeOut } from '../output.ts';
import { alertSenders } from '../start/watchdog.ts';

export const alertsCommand = defineCommand('alerts', {
  description: 'Show active alerts, each with its cause and what to do.',
  flags: (command) =>
    command
      .option('--all', 'also those that are resolved')
      .addOption(limitOption({ of: 'alerts' }).default(100))
      .option('--json', 'as JSON: see below')
      .option('--test', 'send a test alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND'),
  help: `The receiver checks every minute: a subscription that is silent for longer than its usual rate
explains, more lost pushes than usual, events that are missing or could not be compared, a
subscription that will be paused or cancelled or does not run, a certificate near its end, a disk
that fills up, notifications that cannot be stored, a sink that takes nothing. Each alert is raised
once, and resolved once; both are sent to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND. Standard
error has what could not be sent, and whether a receiver runs.

--json: id kind subject severity cause evidence nextStep raisedAt resolvedAt.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot alerts
  $ earshot alerts --all --limit 20
  $ earshot alerts --test`,
  run: (io, flags: AlertFlags) => (flags.test ? sendTest(io) : showAlerts(io, flags)),
});

interface AlertFlags {
  all?: boolean;
  limit: number;
  json?: true;
  test?: true;
}

/** A receiver that runs leaves a mark each minute. */
const upMarkMaxUs = 120_000_000;

function showAlerts(io: Io, { all = false, limit, json }: AlertFlags): Promise<void> {
  return withParts(io, ['reader'], async ({ reader: { alerts: stored, completeness } }) => {
    const alerts = await stored.alerts({ all, limit });
    if (json) await writeJson(io.stdout, alerts.map(toOutput));
    else await printAlerts(io, alerts, all);
    // In each form: without these, an empty list would be no proof.
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
    all
      ? 'No alert was ever raised.\n'
      : 'No alert is active. `earshot alerts --all` shows those that were.\n',
  );
}

/** Without a running receiver there is no watchdog, so that an empty list means nothing. */
async function reportUnwatched(
  { stderr, nowUs }: Pick<Io, 'stderr' | 'nowUs'>,
  completeness: Pick<CompletenessReader, 'uptimes'>,
): Promise<void> {
  const last = (await completeness.uptimes(0)).at(-1);
  if (last !== undefined && nowUs() - last.toUs <= upMarkMaxUs) return;
  const what =
    last === undefined
      ? 'No receiver ever ran on this data directory'
      : `No receiver has run since ${shortDateUs(last.toUs)} (UTC)`;
  stderr.write(`${what}, so nothing is checked. Start it with \`earshot start\`.\n`);
}

/** Tries every channel. Rejects with what those say that fail. */
async function sendTest(io: Io): Promise<void> {
  const { channels, sendAlert } = alertSenders(loadConfig(io, watchSections), io);
  if (channels.length === 0) {
    throw new AppError('configuration', 'There is no channel to test.', {
      advice: 'Set EARSHOT_ALERT_URL or EARSHOT_ALERT_COMMAND.',
    });
  }
  const message = testMessage(io.nowUs());
  const failures: AppError[] = [];
  for (const channel of channels) {
    try {
      await sendAlert(channel, message, io.signal);
      io.stderr.write(`${channelNames[channel]} accepted the test alert.\n`);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  if (first === undefined) return;
  throw first.with({ details: others.map(errorText) });
}

function toOutput({ raisedAtUs, resolvedAtUs, ...alert }: Alert) {
  return { ...alert, raisedAt: isoTime(raisedAtUs), resolvedAt: isoTime(resolvedAtUs) };
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

const channelNames = { url: 'EARSHOT_ALERT_URL', command: 'EARSHOT_ALERT_COMMAND' } as const;

function reportUnsent(
  { stderr }: Pick<Io, 'stderr'>,
  unsentDeliveries: readonly (AlertDelivery & { isGivenUp: boolean })[],
): void {
  for (const { alert, channel, error, isGivenUp } of unsentDeliveries) {
    // One that waits for its first attempt is no news.
    if (error === null) continue;
    const state = isGivenUp ? 'and is not retried' : 'and is retried';
    stderr.write(
      `Alert ${alert.id} was not sent to ${channelNames[channel]}, ${state}: ${printable(error)}\n`,
    );
  }
}
