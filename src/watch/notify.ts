/** Sends alerts through a channel: at least once, and each as raised before as resolved. */
import { type AlertChannel, type AlertFinding, alertRetryDelayMaxUs } from '../domain/alerts.ts';
import { AppError, errorCodeOf, errorText } from '../domain/app-error.ts';
import { jittered } from '../domain/job.ts';
import type { RunProgram } from '../host/run-program.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import { createOutboundClient } from '../http/outbound-client.ts';
import { type AlertMessage, alertMessage } from './alert-message.ts';
import type { SendAlert, WatchDeps } from './situation.ts';
import { minuteUs } from './texts.ts';

/** Delay after the first failure; doubled by each further one. */
const retryMinUs = minuteUs;

/** Six doubling delays, then one attempt per hour: about 24 hours in total. */
const attemptsMax = 30;

/** Maximum deliveries per call. */
const deliveriesMax = 1_000;

/**
 * Sends due deliveries of a channel, oldest first, and stops at the first failure: the channel is probably down, so
 * the rest waits for the next call. Gives up deliveries of a channel that is no longer configured. Resolves with the
 * number sent. Rejects with `unavailable` when the store cannot be used; then an alert may be sent twice.
 */
export async function deliverDue(
  deps: Pick<WatchDeps, 'alerts' | 'channels' | 'sendAlert' | 'nowUs' | 'random' | 'log'>,
  channel: AlertChannel,
  signal: AbortSignal,
): Promise<number> {
  const { alerts, channels, nowUs, log, random } = deps;
  const due = await alerts.dueDeliveries({ nowUs: nowUs(), limit: deliveriesMax, channel });
  const isConfigured = channels.includes(channel);
  let sentCount = 0;
  for (const { id, alert, change, attempts } of due) {
    if (signal.aborted) break;
    const message = alertMessage({ id, alert, change });
    const error = isConfigured
      ? await attemptDelivery(channel, message, deps, signal)
      : notConfigured(channel);
    const atUs = nowUs();
    if (error === null) {
      await alerts.settleDelivery({ id, atUs, outcome: 'sent' });
      sentCount += 1;
      continue;
    }
    // An abort is not a failure of the channel.
    if (isConfigured && signal.aborted) break;
    const fields = { channel, kind: alert.kind, subject: alert.subject, reason: error };
    if (!isConfigured || attempts + 1 >= attemptsMax) {
      log.error(fields, 'gave up an alert delivery');
      await alerts.settleDelivery({ id, atUs, outcome: 'given-up', error });
    } else {
      log.warn(fields, 'failed to send an alert; retry scheduled');
      const waitUs = jittered(Math.min(alertRetryDelayMaxUs, retryMinUs * 2 ** attempts), random);
      const nextAttemptAtUs = atUs + Math.round(waitUs);
      await alerts.settleDelivery({ id, atUs, outcome: 'failed', error, nextAttemptAtUs });
    }
    if (isConfigured) break;
  }
  return sentCount;
}

const notConfigured = (channel: AlertChannel) =>
  `The channel ${channel} is no longer configured for alerts.`;

/** Returns null when the message was accepted, otherwise why not, without secrets. Never rejects. */
async function attemptDelivery(
  channel: AlertChannel,
  message: AlertMessage,
  { sendAlert, log }: Pick<WatchDeps, 'sendAlert' | 'log'>,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    await sendAlert(channel, message, signal);
    return null;
  } catch (error) {
    if (error instanceof AppError && error.code !== 'internal') return errorText(error);
    if (!signal.aborted) log.error({ err: error, channel }, 'failed to send an alert');
    return 'Internal error; see the log.';
  }
}

/** Timeout of one attempt. */
const sendTimeoutMs = 30_000;

/** Sends a message. Rejects with a message without secrets when it was not accepted. */
type AlertSender = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

/** Returns a function that sends through the configured channels; others are refused. */
export function sendThrough(
  senders: Readonly<Partial<Record<AlertChannel, AlertSender>>>,
): SendAlert {
  return async (channel, message, signal) => {
    const send = senders[channel];
    if (send === undefined) throw new AppError('configuration', notConfigured(channel));
    await send(message, signal);
  };
}

/** Id of an alert that is not in the store. */
const unstoredId = 0;

/** An unstored alert is repeated at this interval while active; its resolution is not sent. */
const repeatIntervalUs = 60 * minuteUs;

/**
 * Sends critical findings through every channel when they cannot be stored: each at most once an hour if accepted,
 * otherwise again in the next round. `sentAtUs` records accepted ones by channel, kind and subject while the process
 * runs. Never rejects; waits for one attempt each, and ends early with the signal.
 */
export async function sendUnstored(
  findings: readonly AlertFinding[],
  deps: WatchDeps,
  sentAtUs: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const now = deps.nowUs();
  const send = async (channel: AlertChannel, finding: AlertFinding) => {
    const key = `${channel} ${finding.kind} ${finding.subject}`;
    const agoUs = now - (sentAtUs.get(key) ?? Number.NEGATIVE_INFINITY);
    // A future time was dated by a clock that ran ahead.
    if ((agoUs >= 0 && agoUs < repeatIntervalUs) || signal.aborted) return;
    const alert = { ...finding, id: unstoredId, raisedAtUs: now, resolvedAtUs: null };
    const message = alertMessage({ id: now, alert, change: 'raised' });
    const error = await attemptDelivery(channel, message, deps, signal);
    if (error === null) sentAtUs.set(key, now);
    else if (!signal.aborted) deps.log.error({ channel, reason: error }, 'failed to send an alert');
  };
  const critical = findings.filter(({ severity }) => severity === 'critical');
  await Promise.all(
    critical.flatMap((finding) => deps.channels.map((channel) => send(channel, finding))),
  );
}

/**
 * Sends messages as JSON with POST. Any status of 200 to 299 means accepted, whatever the body. The URL is a secret,
 * as it allows posting: errors name only its host. `variable` holds the URL, for error messages.
 */
export function createUrlSender(options: {
  url: string;
  variable: string;
  fetch: typeof fetch;
  random: () => number;
  timeoutMs?: number;
}): AlertSender {
  const { url, variable, random, timeoutMs = sendTimeoutMs } = options;
  return async (message, signal) => {
    const client = createOutboundClient({
      service: 'the alert service',
      variable,
      fetch: (input, init) => {
        const request = new Request(input, init);
        return options.fetch(request, { signal: AbortSignal.any([request.signal, signal]) });
      },
      random,
      bodies: 'of-failures',
      timing: { attemptTimeoutMs: timeoutMs, totalTimeoutMs: timeoutMs },
    });
    const purpose = 'send an alert';
    const answer = await client({ method: 'POST', url, headers: {}, body: message, purpose });
    if (answer.status >= 200 && answer.status <= 299) return;
    const said = saying(hintOf(answer.text), secretsIn(url));
    throw new AppError(
      'unavailable',
      `The alert service (${new URL(url).host}) answered ${answer.status}${said}.`,
      { advice: `Check ${variable}.` },
    );
  };
}

/** Returns the answer of a channel, as the end of a sentence. */
function saying(text: string, secrets: readonly string[]): string {
  const shown = foreignText(text, { secrets, charactersMax: hintCharactersMax });
  return shown === '' ? '' : `: ${shown}`;
}

/**
 * Minimum length of secrets. Shorter parts of a path, such as `hooks`, are not secret, and hiding them would garble
 * the text.
 */
const secretCharactersMin = 8;

/** Returns the URL and the parts of it that allow posting, as an answer may quote them. */
function secretsIn(url: string): string[] {
  const { pathname, search, searchParams, username, password } = new URL(url);
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password];
  return [url, pathname, search, ...parts].filter(({ length }) => length >= secretCharactersMin);
}

/** Sends messages to a command. Exit code 0 means accepted. `variable` holds the command, for error messages. */
export function createCommandSender(options: {
  command: readonly string[];
  run: RunProgram;
  variable: string;
}): AlertSender {
  const { command, run, variable } = options;
  return async (message, signal) => {
    const line = `${JSON.stringify(message)}\n`;
    const limits = { timeoutMs: sendTimeoutMs, signal };
    const { exitCode, stderr } = await run(command, line, limits).catch((error: unknown) => {
      throw cannotStart(error, variable);
    });
    if (exitCode === 0) return;
    const said = saying(stderr, []);
    const end = exitCode === null ? 'timed out' : `exited with ${exitCode}`;
    throw new AppError('unavailable', `The alert command ${end}${said}.`, {
      advice: `Check ${variable}.`,
    });
  };
}

/** Reports only the code of Node's error, such as ENOENT. */
function cannotStart(error: unknown, variable: string): AppError {
  const message = `The alert command cannot be started (${errorCodeOf(error)}).`;
  const advice = `Check ${variable}: the program must exist and be executable.`;
  return new AppError('unavailable', message, { advice, cause: error });
}
