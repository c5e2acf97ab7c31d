/** `earshot alerts`: lists active and resolved alerts. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import { addSpan, beforeOption, jsonOption, limitOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { writeJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { reportNextPage } from '../../core/cli/row-forms.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { toAlertJson } from '../../core/terms/read-models.ts';
import * as report from '../../core/terms/report.ts';
import { absenceNote } from '../coverage/completeness.ts';
import { alertSenders, channelsOf, testMessage } from './notify.ts';
import { alertSections } from './report.ts';
import { channelSections } from './settings.ts';
import { channelVariables } from './terms.ts';

export const alertsCommand = defineCommand('alerts', {
  description: 'Show active alerts, each with cause and advice.',
  flags: (command, io) =>
    addSpan(command, io, 'when the alert was active')
      .option('--all', 'select all (active and resolved alerts)')
      .addOption(limitOption().default(100))
      .addOption(beforeOption())
      .addOption(jsonOption())
      .option('--test', 'send a test alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND'),
  help: `The receiver checks every minute for these problems:
  - A subscription is silent for an unusually long time, or is paused.
  - The catalogue will soon pause or delete a subscription.
  - Pushes were lost, events are missing, or a comparison failed.
  - The certificate, the disk, the database, the backup or a sink has a problem.
The receiver sends each new and each resolved alert to EARSHOT_ALERT_URL and EARSHOT_ALERT_COMMAND.
Each alert is shown with the channels that have accepted it.

Fields of --json: those of /api/alerts (docs/reference/http.md).

Examples:
  $ earshot alerts                      list active alerts
  $ earshot alerts --all --limit 20     list the last 20 alerts
  $ earshot alerts --all --since 7d     list the alerts of the last week
  $ earshot alerts --test               test the notification channels`,
  run: (io, flags: AlertFlags) => (flags.test ? sendTest(io) : showAlerts(io, flags)),
});

interface AlertFlags {
  all?: boolean;
  limit: number;
  before?: number;
  /** Microseconds. */
  since?: number;
  /** Microseconds. */
  until?: number;
  json?: true;
  test?: true;
}

function showAlerts(
  io: Io,
  { all = false, limit, before: beforeId, since: sinceUs, until: untilUs, json }: AlertFlags,
): Promise<void> {
  return withParts(io, ['reader'], async ({ reader: { alerts: stored, completeness } }) => {
    const alerts = await stored.alerts({ all, limit, beforeId, sinceUs, untilUs });
    if (json) await writeJson(io.stdout, alerts.map(toAlertJson));
    else {
      const none = all
        ? report.empty('No alerts.')
        : report.empty('No active alerts.', '`earshot alerts --all` also lists resolved ones.');
      const blocks = alerts.length === 0 ? [none] : alertSections(alerts);
      await printReport(io, { title: 'Alerts', blocks });
      reportNextPage(io, { count: alerts.length, limit }, `--before ${alerts.at(-1)?.id}`);
    }
    // In every format: otherwise an empty list could mean that nothing was checked.
    const note = await absenceNote(completeness, io.nowUs(), 'nothing is checked');
    if (note !== null) io.stderr.write(`${note}\n`);
  });
}

/** Sends a test alert to every channel. Rejects with the failures. */
async function sendTest(io: Io): Promise<void> {
  const senders = alertSenders(loadConfig(io, channelSections), io);
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
