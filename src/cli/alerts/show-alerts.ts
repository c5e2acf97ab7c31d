/** What `earshot alerts` does: lists alerts, or sends one to try the channels. */
import { readWatchConfig } from '../../config/completeness-config.ts';
import { readDataConfig } from '../../config/read-config.ts';
import type { Alert, AlertDelivery } from '../../domain/alerts.ts';
import { AppError } from '../../domain/app-error.ts';
import type { CompletenessReader } from '../../domain/completeness.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import { openStoreReader } from '../../store/store.ts';
import { testMessage } from '../../watch/telling/alert-message.ts';
import { asCalled } from '../called-as.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { writeJson } from '../notification-output.ts';
import { wrapText } from '../wrap-text.ts';
import { writeOut } from '../write-out.ts';
import { alertTellers } from './alert-tellers.ts';

export interface AlertFlags {
  all?: true;
  limit: number;
  json?: true;
  test?: true;
}

/** A receiver that runs leaves a mark each minute. */
const upMarkMaxUs = 120_000_000;

export async function showAlerts(io: Io, flags: AlertFlags): Promise<void> {
  if (flags.test) return sendTest(io);
  const store = openStoreReader(readDataConfig(io).dataDir);
  try {
    const { all = false, limit, json } = flags;
    const alerts = await store.alerts.alerts({ all, limit });
    if (json) {
      await writeJson(io.stdout, alerts.map(toOutput));
      return;
    }
    for (const [i, alert] of alerts.entries()) {
      await writeOut(io.stdout, `${i === 0 ? '' : '\n'}${paragraph(alert, io)}`);
    }
    if (alerts.length === 0)
      io.stderr.write(`${all ? 'There never was an alert' : 'No alert lasts'}.\n`);
    await tellUnwatched(io, store.completeness);
    tellUntold(io, await store.alerts.untold(io.nowUs()));
  } finally {
    await store.close();
  }
}

/** Without a receiver that runs, nobody looks: then that no alert lasts is no comfort. */
async function tellUnwatched(
  { stderr, nowUs }: Pick<Io, 'stderr' | 'nowUs'>,
  completeness: Pick<CompletenessReader, 'uptimes'>,
): Promise<void> {
  const last = (await completeness.uptimes(0)).at(-1);
  if (last !== undefined && nowUs() - last.toUs <= upMarkMaxUs) return;
  const what =
    last === undefined
      ? 'No receiver ever ran on this data directory'
      : `No receiver has run since ${shortDateUs(last.toUs)} (UTC)`;
  stderr.write(`${what}, so nothing is watched. Start it with \`earshot start\`.\n`);
}

/** Tries every channel. Rejects with what those say that fail. */
async function sendTest(io: Io): Promise<void> {
  const { channels, tell } = alertTellers(readWatchConfig(io), io);
  if (channels.length === 0) {
    throw new AppError(
      'configuration',
      'Nowhere to send it: set EARSHOT_ALERT_URL or EARSHOT_ALERT_COMMAND.',
    );
  }
  const message = testMessage(io.nowUs());
  const failures: AppError[] = [];
  for (const channel of channels) {
    try {
      await tell(channel, message, io.signal);
      io.stderr.write(`The test alert was taken by the ${channel}.\n`);
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      failures.push(error);
    }
  }
  const [first, ...others] = failures;
  if (first === undefined) return;
  throw new AppError(first.code, first.message, { details: others.map(({ message }) => message) });
}

function toOutput({ raisedAtUs, resolvedAtUs, ...alert }: Alert) {
  const resolvedAt = resolvedAtUs === null ? null : formatDateUs(resolvedAtUs);
  return { ...alert, raisedAt: formatDateUs(raisedAtUs), resolvedAt };
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

function tellUntold(
  { stderr }: Pick<Io, 'stderr'>,
  untold: readonly (AlertDelivery & { isGivenUp: boolean })[],
): void {
  for (const { alert, channel, error, isGivenUp } of untold) {
    // One that waits for its first try is no news.
    if (error === null) continue;
    const state = isGivenUp ? 'was given up' : 'is tried again';
    stderr.write(`Telling alert ${alert.id} to the ${channel} ${state}: ${printable(error)}\n`);
  }
}
