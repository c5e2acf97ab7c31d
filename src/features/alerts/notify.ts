/** Alerts as messages, sent through channels: at least once, and each as raised before as resolved. */

import type { Io } from '../../core/cli/io.ts';
import { asCalled } from '../../core/cli/output.ts';
import { type JobDeps, jittered } from '../../core/host/job.ts';
import { createRunProgram, type RunProgram } from '../../core/host/run-program.ts';
import { createOutboundClient } from '../../core/http/outbound-client.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../core/http/service-error.ts';
import { AppError, errorCodeOf, errorText } from '../../core/terms/app-error.ts';
import { dayUs, formatDateUs, hourUs, minuteUs } from '../../core/terms/dates.ts';
import type { Alert, AlertFinding } from '../../core/terms/evaluation.ts';
import { type AlertChannel, alertChannels } from '../../core/terms/ports.ts';
import type { ChannelConfig } from './settings.ts';
import { type Alerts, channelVariables, type ListedAlert, stateOf } from './terms.ts';

/** Version of the document; incremented when a field changes its meaning or is removed. */
const alertMessageVersion = 1;

/** The document. Times are ISO 8601, UTC. The fields are described in docs/monitoring.md. */
export type AlertMessage = ReturnType<typeof alertMessage>;

/** Maximum lines of evidence in the text; `evidence` has all of them. */
const shownEvidenceMax = 3;

/** Chat systems truncate or refuse much longer lines. */
const lineCharactersMax = 500;

/** Returns the message about the state of an alert. Its id is the same when the message is repeated. */
export function alertMessage(alert: Alert, id: string = stateOf(alert)) {
  const { kind, subject, level, text, evidence, nextStep } = alert;
  return {
    version: alertMessageVersion,
    text: textOf(alert),
    id: `alert_${alert.id}_${id}`,
    alert: alert.id,
    change: alert.resolvedAtUs === null ? ('raised' as const) : ('resolved' as const),
    ...{ kind: kind as string, subject, level, problem: text, evidence, nextStep },
    raisedAt: formatDateUs(alert.raisedAtUs),
    resolvedAt: alert.resolvedAtUs === null ? null : formatDateUs(alert.resolvedAtUs),
  };
}

/** Returns a state with a number if it is sent again: receivers drop messages with a known id. */
function messageId(alert: ListedAlert, channel: AlertChannel): string {
  const state = stateOf(alert);
  const { repeats = 0 } = alert.channels.find((one) => one.channel === channel) ?? {};
  return state === 'critical' && repeats > 0 ? `${state}_${repeats + 1}` : state;
}

/** Returns the message that tests a channel. */
export function testMessage(nowUs: number): AlertMessage {
  const alert = {
    ...({ id: 0, kind: 'disk', subject: '', level: 'warning', raisedAtUs: nowUs } as const),
    ...{ text: 'This is a test message.', evidence: ['Sent by `earshot alerts --test`.'] },
    ...{ nextStep: 'No action needed.', resolvedAtUs: null },
  };
  // The id is unique: a receiver that drops repeated messages shows each test.
  const message = alertMessage(alert, String(nowUs));
  return { ...message, kind: 'test', text: `earshot: test message\n${alert.evidence[0]}` };
}

function textOf(alert: Alert): string {
  const { kind, subject, level, text, evidence, nextStep } = alert;
  const about = subject === '' ? kind : `${kind} (${subject})`;
  const lines =
    alert.resolvedAtUs !== null
      ? [`earshot: resolved: ${about}`, `Problem: ${text}`]
      : [
          `earshot: ${level}: ${about}`,
          text,
          ...evidence.slice(0, shownEvidenceMax),
          `Next: ${nextStep}`,
        ];
  return lines.map(plainLine).join('\n');
}

/** Neutralizes text of other services: mentions, links and markup must not take effect. */
function plainLine(line: string): string {
  const shown = foreignText(line, { secrets: [], charactersMax: lineCharactersMax });
  return shown.replaceAll('<', '‹').replaceAll('>', '›').replaceAll('@', '(at)');
}

/**
 * Sends a message through a channel. Rejects with a message without secrets when it was not accepted; ends early when
 * the signal is aborted.
 */
export type AlertSender = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

export interface DeliveryDeps extends Pick<JobDeps, 'random' | 'log'> {
  alerts: Alerts;
  /** The configured channels, possibly none. */
  senders: Readonly<Partial<Record<AlertChannel, AlertSender>>>;
  nowUs: () => number;
}

/** Returns the configured channels. */
export function channelsOf(senders: DeliveryDeps['senders']): AlertChannel[] {
  return alertChannels.filter((channel) => senders[channel] !== undefined);
}

/** Delay after the first failure of a message; doubled by each further one, up to the maximum. Both before jitter. */
const retryUs = { min: minuteUs, max: hourUs };

/** Six doubling delays, then one attempt per hour: about 24 hours in total. */
const attemptsMax = 30;

/** Time for which the resolution of an alert is sent. */
const resolutionSentUs = dayUs;

/** Maximum alerts per call. */
const alertsMax = 1_000;

interface ChannelState {
  channel: AlertChannel;
  /** Failed messages, by id. Only in memory: a restart repeats them. */
  failed: Map<string, { failures: number; retryAtUs: number }>;
}

/**
 * Sends the alerts whose state the channel has not accepted, by id, and stops at the first failure: the channel is
 * probably down, so the rest waits for the next call. An alert waits for earlier ones of its kind and subject, unless
 * they were given up. Rejects with `unavailable` when the store cannot be used; then an alert may be sent twice.
 */
export async function deliverDue(
  deps: DeliveryDeps,
  { channel, failed }: ChannelState,
  signal: AbortSignal,
): Promise<void> {
  const { alerts, senders, nowUs, log, random } = deps;
  const send = senders[channel];
  if (send === undefined) return;
  // Whole hours, because the store remembers the answer to the same query.
  const resolvedSinceUs = Math.floor(nowUs() / hourUs) * hourUs - resolutionSentUs;
  const unsent = await alerts.unsent({ channel, resolvedSinceUs, limit: alertsMax });
  const messages = unsent.map((alert) => {
    return { alert, message: alertMessage(alert, messageId(alert, channel)) };
  });
  for (const id of failed.keys()) {
    if (!messages.some(({ message }) => message.id === id)) failed.delete(id);
  }
  const waiting = new Set<string>();
  for (const { alert, message } of messages) {
    const { id, kind, subject } = alert;
    const key = `${kind} ${subject}`;
    const { failures = 0, retryAtUs = 0 } = failed.get(message.id) ?? {};
    if (failures >= attemptsMax) continue;
    const waitUs = retryAtUs - nowUs();
    // A longer time was set by a clock that ran ahead.
    if (waiting.has(key) || (waitUs > 0 && waitUs <= 1.25 * retryUs.max)) {
      waiting.add(key);
      continue;
    }
    const error = await attempt(send, message, signal);
    if (error === null) {
      await alerts.recordAttempt({ id, channel, sent: stateOf(alert) });
      continue;
    }
    // An abort is not a failure of the channel.
    if (signal.aborted) return;
    const isLast = failures + 1 >= attemptsMax;
    const result = isLast ? 'gave up' : 'retry scheduled';
    log.warn({ channel, kind, subject, reason: error }, `failed to send an alert; ${result}`);
    const delayUs = jittered(Math.min(retryUs.max, retryUs.min * 2 ** failures), random);
    const failure = { failures: failures + 1, retryAtUs: nowUs() + Math.round(delayUs) };
    failed.set(message.id, failure);
    const ended = isLast ? `${error} No retry after ${attemptsMax} attempts.` : error;
    return alerts.recordAttempt({ id, channel, error: ended });
  }
}

/** Returns null when the message was accepted, otherwise why not, without secrets. Never rejects. */
const attempt = (send: AlertSender, ...request: Parameters<AlertSender>) =>
  send(...request).then(
    () => null,
    // The text of another error may contain parts of the request.
    (error) => (error instanceof AppError ? errorText(error) : `Error ${errorCodeOf(error)}.`),
  );

/** An unstored alert is repeated at this interval while active; its resolution is not sent. */
const repeatIntervalUs = 60 * minuteUs;

/**
 * Sends critical findings through every channel when they cannot be stored: each at most once an hour if accepted,
 * otherwise again in the next round. `sentAtUs` records accepted ones by channel, kind and subject while the process
 * runs. Never rejects; waits for one attempt each, and ends early with the signal.
 */
export async function sendUnstored(
  findings: readonly AlertFinding[],
  { senders, nowUs, log }: Pick<DeliveryDeps, 'senders' | 'nowUs' | 'log'>,
  sentAtUs: Map<string, number>,
  signal: AbortSignal,
): Promise<void> {
  const now = nowUs();
  const sendOne = async (channel: string, send: AlertSender, finding: AlertFinding) => {
    const key = `${channel} ${finding.kind} ${finding.subject}`;
    // After the clock was set back, the time may be in the future.
    if (Math.abs(now - (sentAtUs.get(key) ?? 0)) < repeatIntervalUs) return;
    const alert = { ...finding, id: 0, raisedAtUs: now, resolvedAtUs: null };
    const reason = await attempt(send, alertMessage(alert, String(now)), signal);
    if (reason === null) sentAtUs.set(key, now);
    else if (!signal.aborted) log.error({ channel, reason }, 'failed to send an alert');
  };
  const critical = findings.filter(({ level }) => level === 'critical');
  await Promise.all(
    Object.entries(senders).flatMap(([channel, send]) =>
      critical.map((finding) => sendOne(channel, send, finding)),
    ),
  );
}

/** Timeout of one attempt. */
const sendTimeoutMs = 30_000;

/**
 * Sends messages as JSON with POST. Any status of 200 to 299 means accepted. The URL is a secret,
 * as it allows posting: errors name only its host.
 */
export function createUrlSender(
  url: string,
  io: { fetch: typeof fetch; random: () => number; timeoutMs?: number },
): AlertSender {
  const { timeoutMs = sendTimeoutMs } = io;
  const variable = channelVariables.url;
  const client = createOutboundClient({
    ...{ service: 'the alert service', variable, ...io },
    timing: { attemptTimeoutMs: timeoutMs, totalTimeoutMs: timeoutMs },
  });
  const request = { method: 'POST', url, headers: {}, purpose: 'send an alert' } as const;
  return async (body, signal) => {
    const { status, text } = await client({ ...request, body, signal });
    if (status >= 200 && status <= 299) return;
    const what = `The alert service (${new URL(url).host}) answered ${status}`;
    throw refusal(what, variable, hintOf(text), secretsIn(url));
  };
}

/** Returns the error of a channel that did not accept a message, with its answer. */
function refusal(what: string, variable: string, answer = '', secrets: readonly string[] = []) {
  const said = foreignText(answer, { secrets, charactersMax: hintCharactersMax });
  const message = said === '' ? `${what}.` : `${what}: ${said}.`;
  return new AppError('unavailable', message, { advice: `Check ${variable}.` });
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

/** Sends messages to a command. Exit code 0 means accepted. */
export function createCommandSender(command: readonly string[], run: RunProgram): AlertSender {
  const variable = channelVariables.command;
  return async (message, signal) => {
    const limits = { timeoutMs: sendTimeoutMs, signal };
    const ended = await run(command, `${JSON.stringify(message)}\n`, limits).catch((error) => {
      // Only the code of Node's error, such as ENOENT.
      throw refusal(`The alert command cannot be started (${errorCodeOf(error)})`, variable);
    });
    const { exitCode, stderr } = ended;
    if (exitCode === 0) return;
    const end = exitCode === null ? 'timed out' : `exited with ${exitCode}`;
    throw refusal(`The alert command ${end}`, variable, stderr);
  };
}

/** Returns the senders of the configured notification channels. */
export function alertSenders(
  { alertUrl, alertCommand }: Pick<ChannelConfig, 'alertUrl' | 'alertCommand'>,
  { fetch, random, ...host }: Pick<Io, 'fetch' | 'random' | 'env' | 'onExit'>,
): DeliveryDeps['senders'] {
  const named = (send: AlertSender): AlertSender => {
    return (message, signal) => send(withCommands(message, host), signal);
  };
  return {
    ...(alertUrl !== null && { url: named(createUrlSender(alertUrl, { fetch, random })) }),
    ...(alertCommand !== null && {
      command: named(createCommandSender(alertCommand, createRunProgram(host))),
    }),
  };
}

/** Names commands as the receiver was called: its machine runs them. */
function withCommands(message: AlertMessage, io: Pick<Io, 'env'>): AlertMessage {
  const { text, problem, nextStep } = message;
  const named = (one: string) => asCalled(one, io);
  return { ...message, text: named(text), problem: named(problem), nextStep: named(nextStep) };
}
