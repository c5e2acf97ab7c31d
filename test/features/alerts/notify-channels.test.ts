/** Alert notifications: the input of a URL and a command, and that nothing is lost when they fail or hang. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { RunProgram } from '../../../src/core/host/run-program.ts';
import { AppError, errorText } from '../../../src/core/terms/app-error.ts';
import type { AlertFinding } from '../../../src/core/terms/evaluation.ts';
import { quoted } from '../../../src/core/terms/text.ts';
import { checkAlerts } from '../../../src/features/alerts/doctor.ts';
import { startWatchdog } from '../../../src/features/alerts/job.ts';
import {
  type AlertMessage,
  type AlertSender,
  alertMessage,
  createCommandSender,
  createUrlSender,
  deliverDue,
} from '../../../src/features/alerts/notify.ts';
import { startServer } from '../../core/http/answering-server.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { startHook } from '../sinks/hook-server.ts';
import {
  beginUs,
  dayUs,
  hourUs,
  minuteUs,
  openContext,
  quiet,
  type TestContext,
} from './watch-context.ts';

const { signal } = new AbortController();
const hanging: AlertSender = () => new Promise(() => undefined);
const refusing: AlertSender = () => Promise.reject(new AppError('unavailable', 'It answered 500.'));

const finding = (fields: Partial<AlertFinding> = {}): AlertFinding => ({
  kind: 'sink',
  subject: 'bus',
  level: 'warning',
  text: 'The sink bus has a backlog.',
  evidence: ['It waits for 20 min.', 'The last failure: <!channel> @all https://x.example'],
  nextStep: 'See to it.',
  ...fields,
});
const alert = { ...finding(), id: 3, raisedAtUs: beginUs, resolvedAtUs: null };
const message = alertMessage(alert);

const urlSender = (url: string, timeoutMs = 10_000) =>
  createUrlSender(url, { fetch, random: () => 0.5, timeoutMs });

/** Raises these findings; all findings count as checked. */
function raise({ store }: TestContext, findings: readonly AlertFinding[], atUs = beginUs) {
  const checked = [finding(), finding({ subject: 'lake' }), ...findings];
  return store.alerts.settleFindings({ checked, findings, channels: ['url', 'command'], atUs });
}

describe('a message', () => {
  it('has a text for chat systems, without mentions and markup', () => {
    expect(message).toMatchObject({
      version: 1,
      id: 'alert_3_warning',
      alert: 3,
      resolvedAt: null,
    });
    expect(message.text.split('\n')).toEqual([
      'earshot: warning: sink (bus)',
      'The sink bus has a backlog.',
      'It waits for 20 min.',
      'The last failure: ‹!channel› (at)all https://x.example',
      'Next: See to it.',
    ]);
    expect(alertMessage({ ...alert, resolvedAtUs: beginUs + dayUs })).toMatchObject({
      ...{ id: 'alert_3_resolved', change: 'resolved' },
      text: 'earshot: resolved: sink (bus)\nProblem: The sink bus has a backlog.',
      resolvedAt: expect.any(String),
    });
  });

  it('quotes foreign text without markup and without an address that a chat would link', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[](a)`*_~| :/é_-') }), (words) => {
        expect(quoted(words)).not.toMatch(/[[\]`*~|]|:\/\/|(^|[^a-zé])_|_($|[^a-zé])/);
      }),
    );
    expect(quoted('500: [reset](https://evil.example/p) **now** `x` _y_ ~| S2A_MSI > 2.')).toBe(
      "500: (reset)(https : //evil.example/p) ∗∗now∗∗ 'x' ‗y‗ ∼∣ S2A_MSI > 2.",
    );
  });
});

describe('a URL', () => {
  const failureOf = (sending: Promise<unknown>) => sending.then(() => null, errorText);

  it.each([302, 404, 500])(
    'that answers %i has not accepted the message, and is not shown in full',
    async (status) => {
      const body = 'no team at /hooks/T0/secret-token (secret-token)';
      const server = await startServer([{ status, body }]);
      const url = `${server.url}/hooks/T0/secret-token`;
      const text = await failureOf(urlSender(url)(message, signal));
      expect(text).toContain(`answered ${status}: no team at …`);
      expect(text).toContain('EARSHOT_ALERT_URL');
      expect(text).not.toContain('secret-token');
      expect(server.requests).toHaveLength(1);
    },
  );

  it('that answers 2xx has accepted the JSON', async () => {
    const server = await startServer([{ status: 204 }]);
    await urlSender(`${server.url}/x`)(message, signal);
    expect(server.requests).toMatchObject([{ method: 'POST', path: '/x' }]);
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(message);
  });

  it('that hangs is aborted at the timeout, and when the program stops', async () => {
    const server = await startServer(['hang']);
    const url = `${server.url}/secret-token`;
    const text = await failureOf(urlSender(url, 50)(message, signal));
    expect(text).toContain('did not answer in time');
    expect(text).not.toContain('secret-token');
    const ending = new AbortController();
    const ended = failureOf(urlSender(url)(message, ending.signal));
    await vi.waitFor(() => expect(server.requests).toHaveLength(2));
    ending.abort();
    expect(await ended).not.toBeNull();
  });
});

it.each([
  [0, null],
  [3, 'exited with 3: no \\u001b[31mmail. Check EARSHOT_ALERT_COMMAND.'],
  [null, 'timed out. Check'],
])('a command that ends with %j has accepted the message or not: %j', async (exitCode, error) => {
  const runs: unknown[] = [];
  const run: RunProgram = async (command, stdin) => {
    runs.push([command, stdin]);
    const [stdout, stderr] = ['', exitCode === 3 ? 'no \u001b[31mmail' : ''];
    return { exitCode, signal: null, timedOut: exitCode === null, stdout, stderr };
  };
  const sending = createCommandSender(['notify-me', '--urgent'], run)(message, signal);
  const text = await sending.then(() => null, errorText);
  expect(text).toEqual(error && expect.stringContaining(error));
  expect(runs).toEqual([[['notify-me', '--urgent'], `${JSON.stringify(message)}\n`]]);
});

describe('an unsent alert', () => {
  /** Sends to the URL until the minute, every ten seconds; returns what was tried, by minute. */
  async function openDeliveries(isAccepted: (message: AlertMessage) => boolean) {
    const tried: string[] = [];
    const url: AlertSender = async ({ change, subject, ...message }) => {
      tried.push(`${minute} ${change} ${subject}`);
      if (!isAccepted({ change, subject, ...message })) return refusing(message as never, signal);
    };
    const opened = await openContext({ senders: { url } });
    const state = { channel: 'url', failed: new Map() } as const;
    let minute = 0;
    const until = async (end: number) => {
      for (; minute < end; minute += 1) {
        opened.setNow(beginUs + minute * minuteUs);
        await deliverDue(opened.context, state, signal);
      }
      return tried;
    };
    return { ...opened, until };
  }

  it('is sent once, and an alert before its end', async () => {
    const opened = await openDeliveries(() => true);
    await raise(opened, [finding()]);
    await raise(opened, [finding(), finding({ subject: 'lake' })]);
    await opened.until(2);
    await raise(opened, [finding({ subject: 'lake' })]);
    expect(await opened.until(4)).toEqual(['0 raised bus', '0 raised lake', '2 resolved bus']);
  });

  it('has another id when the alert becomes critical again', async () => {
    const ids: string[] = [];
    const opened = await openContext({ senders: { url: async ({ id }) => void ids.push(id) } });
    const state = { channel: 'url', failed: new Map() } as const;
    for (const level of ['critical', 'warning', 'critical', 'critical', undefined] as const) {
      await raise(opened, level === undefined ? [] : [finding({ level })]);
      await deliverDue(opened.context, state, signal);
    }
    expect(ids).toEqual(['alert_1_critical', 'alert_1_critical_2', 'alert_1_resolved']);
  });

  it('that is refused is retried at growing intervals for a day, without delaying others, then given up', async () => {
    const opened = await openDeliveries(({ subject }) => subject === 'lake');
    await raise(opened, [finding(), finding({ subject: 'lake' })]);
    const tried = await opened.until(26 * 60);
    const minutes = [0, 1, 3, 7, 15, 31, ...Array.from({ length: 24 }, (_, i) => 63 + 60 * i)];
    expect(tried.toSpliced(2, 1)).toEqual(minutes.map((at) => `${at} raised bus`));
    expect(tried[2]).toBe('2 raised lake');
    const [, bus] = await opened.store.alerts.alerts({ all: false, limit: 9 });
    expect(bus?.channels[0]).toMatchObject({
      ...{ sent: null, error: 'It answered 500. No retry after 30 attempts.' },
    });
  });

  it('waits for earlier ones of its subject, and is sent as resolved when nothing was accepted before', async () => {
    let isUp = false;
    const opened = await openDeliveries(() => isUp);
    for (const findings of [[finding()], [], [finding()]]) await raise(opened, findings);
    expect(await opened.until(1)).toEqual(['0 resolved bus']);
    isUp = true;
    const sent = ['0 resolved bus', '1 resolved bus', '1 raised bus'];
    expect(await opened.until(3)).toEqual(sent);
    opened.context.senders = {};
    await raise(opened, []);
    expect(await opened.until(5)).toEqual(sent);
  });
});

it('the watchdog sends through one channel while the other hangs, and stops', async () => {
  const probes = { ...quiet, disk: low };
  const opened = await openContext({ probes });
  const { context, sent } = opened;
  const { url = hanging } = context.senders;
  context.senders = { url: hanging, command: url };
  const watchdog = startWatchdog(context, { firstMs: 1, intervalMs: 20, deliveryIntervalMs: 5 });
  onTestFinished(() => watchdog.stop());
  await vi.waitFor(() => expect(sent).toMatchObject([{ kind: 'disk' }]));
  probes.disk = async () => ({ ...(await low()), freeBytes: 50 * gib });
  await vi.waitFor(() => expect(sent[1]).toMatchObject({ change: 'resolved' }));
  // Time passes at once, so that the hanging channel is not waited for.
  context.pause = async () => undefined;
  await watchdog.stop();
});

const gib = 2 ** 30;
const low = async () => ({ freeBytes: gib / 2, totalBytes: 100 * gib, reserveBytes: 0 });
const full = () => Promise.reject(new AppError('unavailable', 'The disk is full.'));

/** A full disk, and a store that refuses alerts. */
async function openFull(parts: Parameters<typeof openContext>[0] = {}) {
  const opened = await openContext({ probes: { ...quiet, disk: low }, ...parts });
  opened.context.alerts = { ...opened.context.alerts, settleFindings: full };
  return opened;
}

describe('an alert that cannot be stored', () => {
  it('is sent once an hour when it is critical, also when the clock was set back', async () => {
    const { context, sent, checkAt } = await openFull();
    const sentAt = async (hour: number) => {
      await checkAt(beginUs + hour * hourUs);
      return sent.length;
    };
    expect([await sentAt(0), await sentAt(0.9), await sentAt(1)]).toEqual([1, 1, 2]);
    expect(sent).toMatchObject(Array(2).fill({ kind: 'disk', level: 'critical', alert: 0 }));
    expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
    expect(await sentAt(-1)).toBe(3);
    // The store cannot be read, either.
    context.alerts = { ...context.alerts, alerts: full };
    expect(await sentAt(3)).toBe(4);
  });

  it('is sent again in the next round, only through channels that did not accept it', async () => {
    const tried: string[] = [];
    const accepting: AlertSender = async () => void tried.push('accepted');
    const { context, checkAt } = await openFull({
      senders: { url: refusing, command: accepting },
    });
    await checkAt(beginUs);
    expect(tried).toEqual(['accepted']);
    context.senders = { url: accepting, command: accepting };
    await checkAt(beginUs + minuteUs);
    await checkAt(beginUs + 2 * minuteUs);
    expect(tried).toEqual(['accepted', 'accepted']);
  });
});

it('the doctor checks each channel, posts nothing, and does not reveal the URL', async () => {
  const findProgram = (program: string) => (program === 'notify' ? null : 'it is not a file');
  const none = { alertUrl: null, alertCommand: null };
  const deps = { findProgram, signal };
  const nextStep = expect.stringMatching(/EARSHOT_ALERT_URL.*EARSHOT_ALERT_COMMAND/);
  expect(await checkAlerts(none, deps)).toMatchObject([{ level: 'warning', nextStep }]);
  const hook = await startHook();
  const alertUrl = `${hook.url}/secret-part`;
  const good = await checkAlerts({ alertUrl, alertCommand: ['notify', '--urgent'] }, deps);
  expect(good).toMatchObject([{ level: 'ok' }, { level: 'ok' }]);
  expect(hook.received).toEqual([]);
  const closed = `http://127.0.0.1:${await freePort()}/secret-part`;
  const bad = await checkAlerts({ alertUrl: closed, alertCommand: ['./gone'] }, deps);
  expect(bad).toMatchObject([
    { level: 'critical', text: expect.stringContaining('ECONNREFUSED') },
    { level: 'critical', text: './gone cannot be used: it is not a file.' },
  ]);
  expect(JSON.stringify([good, bad])).not.toContain('secret-part');
  const stopped = { ...deps, signal: AbortSignal.abort() };
  const text = expect.stringContaining('was cancelled');
  expect(await checkAlerts({ ...none, alertUrl }, stopped)).toMatchObject([
    { level: 'critical', text },
  ]);
});

it('an alert is sent by the next program when the first was killed while it sent it', async () => {
  const dataDir = temporaryDirectory();
  // The first message arrives, but is not acknowledged before the kill.
  const chat = await startServer(['hang', { status: 204 }]);
  const program = join(import.meta.dirname, 'alert-kill-child.ts');
  const child = fork(program, [dataDir, chat.url], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await vi.waitFor(() => expect(chat.requests).toHaveLength(1), { timeout: 20_000 });
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);

  const { context } = await openContext({ senders: { url: urlSender(chat.url) } });
  const nowUs = () => Date.now() * 1_000;
  const store = await openStore({ dataDir });
  onTestFinished(() => store.close());
  const state = { channel: 'url', failed: new Map() } as const;
  await deliverDue({ ...context, alerts: store.alerts, nowUs }, state, signal);
  const [alert] = await store.alerts.alerts({ all: false, limit: 9 });
  expect(alert?.channels).toEqual([{ channel: 'url', sent: 'critical', error: null }]);
  const [one, other, ...more] = chat.requests.map(({ body }) => JSON.parse(body));
  expect(one).toMatchObject({ kind: 'disk', change: 'raised', alert: 1 });
  expect(other).toEqual(one);
  expect(more).toEqual([]);
});
