/** Tells what is to be told through one channel: at least once, each alert before its end. */
import {
  type AlertChannel,
  type AlertDelivery,
  type AlertFinding,
  alertRetryDelayMaxUs,
} from '../domain/alerts.ts';
import { AppError, errorCodeOf, errorText } from '../domain/app-error.ts';
import type { Finding } from '../domain/finding.ts';
import { jittered } from '../domain/job.ts';
import type { RunProgram } from '../host/run-program.ts';
import { reachHost } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import { createOutboundClient } from '../http/outbound-client.ts';
import { type AlertMessage, alertMessage } from './alert-message.ts';
import { minuteUs, type SendAlert, type WatchDeps } from './situation.ts';

/** After a failure, doubling. */
const retryMinUs = minuteUs;

/** Six waits that double, then one an hour: about 24 hours of trying. */
const attemptsMax = 30;

/** Deliveries of one call. */
const deliveriesMax = 1_000;

type DeliveryDeps = Pick<
  WatchDeps,
  'alerts' | 'channels' | 'sendAlert' | 'nowUs' | 'random' | 'pause' | 'log'
>;

/**
 * Tells what is due through the channel, oldest first, and stops at the first failure: the channel is most likely
 * down, and what comes after it is tried in the next call. What is due through a channel that is set up no longer is
 * given up. Resolves with how many were told. Rejects with `unavailable` where the store cannot be used; then
 * something may be told a second time.
 */
export async function deliverDue(
  deps: DeliveryDeps,
  channel: AlertChannel,
  signal: AbortSignal,
): Promise<number> {
  const { alerts, channels, nowUs } = deps;
  const due = await alerts.dueDeliveries({ nowUs: nowUs(), limit: deliveriesMax, channel });
  if (!channels.includes(channel)) return giveUp(due, channel, deps);
  let sentCount = 0;
  for (const delivery of due) {
    if (signal.aborted) break;
    const error = await attemptDelivery({ channel, message: alertMessage(delivery) }, deps, signal);
    if (error === null) {
      await alerts.settleDelivery({ id: delivery.id, atUs: nowUs(), outcome: 'sent' });
      sentCount += 1;
      continue;
    }
    // The program ends: that is not the channel's failure.
    if (!signal.aborted) await settleFailure(delivery, error, deps);
    break;
  }
  return sentCount;
}

async function giveUp(
  due: readonly AlertDelivery[],
  channel: AlertChannel,
  { alerts, nowUs, log }: DeliveryDeps,
): Promise<number> {
  const error = `No ${channel} is set up for alerts any more.`;
  for (const { id } of due) {
    await alerts.settleDelivery({ id, atUs: nowUs(), outcome: 'given-up', error });
  }
  if (due.length > 0) log.warn({ channel, alerts: due.length, reason: error }, 'alerts given up');
  return 0;
}

async function settleFailure(
  delivery: AlertDelivery,
  error: string,
  { alerts, nowUs, random, log }: DeliveryDeps,
): Promise<void> {
  const { id, channel, attempts, alert } = delivery;
  const fields = { channel, kind: alert.kind, subject: alert.subject, reason: error };
  const atUs = nowUs();
  if (attempts + 1 >= attemptsMax) {
    log.error(fields, 'an alert could not be told for a day; it is given up');
    return alerts.settleDelivery({ id, atUs, outcome: 'given-up', error });
  }
  const waitUs = jittered(Math.min(alertRetryDelayMaxUs, retryMinUs * 2 ** attempts), random);
  log.warn(fields, 'an alert could not be told; it is tried again');
  const nextAttemptAtUs = atUs + Math.round(waitUs);
  return alerts.settleDelivery({ id, atUs, outcome: 'failed', error, nextAttemptAtUs });
}

/** A channel that does not even end after its own timeout is left behind. */
const graceMs = 5_000;

/** Null when it was taken, else why not, without secrets. Never rejects, nor waits much longer than the timeout. */
async function attemptDelivery(
  { channel, message }: { channel: AlertChannel; message: AlertMessage },
  { sendAlert, pause, log }: Pick<WatchDeps, 'sendAlert' | 'pause' | 'log'>,
  signal: AbortSignal,
): Promise<string | null> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const sending = sendAlert(channel, message, either).then(
    () => null,
    (error: unknown) => {
      if (error instanceof AppError && error.code !== 'internal') return errorText(error);
      if (!either.aborted) log.error({ err: error, channel }, 'an alert could not be told');
      return 'It failed in a way it should not; the log has more.';
    },
  );
  const late = pause(sendTimeoutMs + graceMs, either).then(() => 'It did not end in time.');
  const outcome = await Promise.race([sending, late]);
  enough.abort();
  return outcome;
}

/** For one attempt. */
const sendTimeoutMs = 30_000;

/** Tells one message. Rejects, with words that hold no secret, when it was not taken. */
type AlertSender = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

/** A channel that has no send refuses. */
export function sendThrough(
  senders: Readonly<Partial<Record<AlertChannel, AlertSender>>>,
): SendAlert {
  return async (channel, message, signal) => {
    const send = senders[channel];
    if (send === undefined) {
      throw new AppError('configuration', `No ${channel} is set up for alerts any more.`);
    }
    await send(message, signal);
  };
}

/** The number of an alert that is not in the store. */
const unstoredId = 0;

/** Nothing is remembered of it, and so its end is not told; while it lasts, it is told again. */
const repeatIntervalUs = 60 * minuteUs;

/**
 * Tells critical findings through every channel at once, each finding at most once an hour where it was taken, and
 * again in the next round where it was not. `sentAtUs` remembers what was taken, by channel, kind and subject, for as
 * long as the program isRunning. Never rejects; waits for one attempt of each, and ends early with the signal.
 */
export async function sendUnstored(
  findings: readonly AlertFinding[],
  deps: WatchDeps,
  sentAtUs: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const { channels, nowUs, log } = deps;
  const now = nowUs();
  const wasSent = (key: string) => {
    const sentUs = sentAtUs.get(key);
    // One that is ahead was dated by a clock that was.
    return sentUs !== undefined && sentUs <= now && now - sentUs < repeatIntervalUs;
  };
  const critical = findings.filter(({ severity }) => severity === 'critical');
  const sending = critical.flatMap((finding) => {
    const alert = { ...finding, id: unstoredId, raisedAtUs: now, resolvedAtUs: null };
    return channels.map(async (channel) => {
      const key = `${channel} ${finding.kind} ${finding.subject}`;
      if (wasSent(key) || signal.aborted) return;
      const delivery = { id: now, alert, change: 'raised' as const };
      const error = await attemptDelivery(
        { channel, message: alertMessage(delivery) },
        deps,
        signal,
      );
      if (error === null) sentAtUs.set(key, now);
      else if (!signal.aborted) {
        log.error({ channel, reason: error }, 'an alert could not be told');
      }
    });
  });
  await Promise.all(sending);
}

/**
 * POSTs the message as JSON; any status of 200 to 299 means that it was taken, whatever its
 * body. The URL is a secret, as whoever
 * has it can post: errors name its host alone. `variable` holds the URL, for the words of errors.
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
      service: 'the service that alerts are told to',
      variable,
      fetch: (input, init) => {
        const request = new Request(input, init);
        return options.fetch(request, { signal: AbortSignal.any([request.signal, signal]) });
      },
      random,
      bodies: 'of-failures',
      timing: { attemptTimeoutMs: timeoutMs, totalTimeoutMs: timeoutMs },
    });
    const purpose = 'tell an alert';
    const answer = await client({ method: 'POST', url, headers: {}, body: message, purpose });
    if (answer.status >= 200 && answer.status <= 299) return;
    const said = saying(hintOf(answer.text), secretsIn(url));
    throw new AppError(
      'unavailable',
      `The service that alerts are told to (${new URL(url).host}) answered ${answer.status}${said}.`,
      { advice: `Check ${variable}.` },
    );
  };
}

/** What a channel said to a refusal, as the end of a sentence. */
function saying(text: string, secrets: readonly string[]): string {
  const words = foreignText(text, { secrets, charactersMax: hintCharactersMax });
  return words === '' ? '' : `, saying: ${words}`;
}

/** Shorter parts of a path, such as `hooks`, are no secrets, and would garble the words. */
const secretCharactersMin = 8;

/** An answer may quote the URL, or the part of it that lets one post. */
function secretsIn(url: string): string[] {
  const { pathname, search, searchParams, username, password } = new URL(url);
  const parts = [...pathname.split('/'), ...searchParams.values(), username, password];
  return [url, pathname, search, ...parts].filter(({ length }) => length >= secretCharactersMin);
}

/** Exit code 0 means that it was taken. `variable` holds the command, for the words of errors. */
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
    const end = exitCode === null ? 'did not end in time' : `ended with ${exitCode}`;
    throw new AppError('unavailable', `The command that alerts are told to ${end}${said}.`, {
      advice: `Check ${variable}.`,
    });
  };
}

/** Of Node's error the code alone is told, such as ENOENT. */
function cannotStart(error: unknown, variable: string): AppError {
  const message = `The command that alerts are told to cannot be started (${errorCodeOf(error)}).`;
  const advice = `Check ${variable}: the program must be there, and executable.`;
  return new AppError('unavailable', message, { advice, cause: error });
}

const check = 'alerts';

interface AlertCheckOptions {
  /** A secret: findings name its host alone. Null where there is none. */
  alertUrl: string | null;
  /** A program and its arguments; null where there is none. */
  alertCommand: readonly string[] | null;
  /** Null when the program can be started, else why not. */
  findProgram: (program: string) => string | null;
  signal: AbortSignal;
}

/** One finding for each channel, or that there is none; never rejects. */
export async function checkAlerts(options: AlertCheckOptions): Promise<Finding[]> {
  const { alertUrl, alertCommand } = options;
  const findings = [
    ...(alertUrl === null ? [] : [await checkUrl(alertUrl, options.signal)]),
    ...(alertCommand === null ? [] : [checkCommand(alertCommand, options)]),
  ];
  return findings.length > 0 ? findings : [noChannel];
}

const noChannel: Finding = {
  check,
  state: 'warn',
  message: 'Nobody is told of alerts: they stand in the log and in `earshot alerts` alone.',
  advice:
    'Set EARSHOT_ALERT_URL, such as the incoming webhook of a chat, or EARSHOT_ALERT_COMMAND.',
};

async function checkUrl(url: string, signal: AbortSignal): Promise<Finding> {
  const { host } = new URL(url);
  const fault = await reachHost(url, { ca: null, signal });
  return fault === null
    ? passed(`${host} can be reached; \`earshot alerts --test\` sends it one.`)
    : {
        ...{ check, state: 'fail', message: `${host} cannot be reached: ${fault}.` },
        advice: 'Correct EARSHOT_ALERT_URL, or let this machine through to it.',
      };
}

function checkCommand(
  [program = '']: readonly string[],
  { findProgram }: Pick<AlertCheckOptions, 'findProgram'>,
): Finding {
  const fault = findProgram(program);
  return fault === null
    ? passed(`${program} is there, and may be run; \`earshot alerts --test\` isRunning it.`)
    : {
        ...{ check, state: 'fail', message: `${program} cannot be run: ${fault}.` },
        advice:
          'Correct EARSHOT_ALERT_COMMAND, best with the whole path, or make the program executable.',
      };
}

const passed = (message: string): Finding => ({ check, state: 'pass', message });
