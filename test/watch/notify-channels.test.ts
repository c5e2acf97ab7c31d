/**
 * Alert notifications: the input of a URL and a command, and that nothing is lost when they fail or
 * hang.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { checkAlerts } from '../../src/cli/doctor/endpoint-steps.ts';
import type { AlertFinding } from '../../src/domain/alerts.ts';
import { AppError, errorText } from '../../src/domain/app-error.ts';
import type { RunProgram } from '../../src/host/run-program.ts';
import { answerBytesMax } from '../../src/http/bounded-fetch.ts';
import { openStore } from '../../src/store/store.ts';
import { alertMessage } from '../../src/watch/alert-message.ts';
import {
  createCommandSender,
  createUrlSender,
  deliverDue,
  sendThrough,
} from '../../src/watch/notify.ts';
import { quoted } from '../../src/watch/texts.ts';
import { startWatchdog } from '../../src/watch/watchdog.ts';
import { freePort } from '../helpers/free-ports.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { type Answer, startServer } from '../http/answering-server.ts';
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

const finding = (fields: Partial<AlertFinding> = {}): AlertFinding => ({
  kind: 'sink',
  subject: 'bus',
  severity: 'warning',
  cause: 'The sink bus has a backlog.',
  evidence: ['It waits for 20 min.', 'The last failure: <!channel> @all https://x.example'],
  nextStep: 'See to it.',
  ...fields,
});

const message = alertMessage({
  id: 7,
  alert: { ...finding(), id: 3, raisedAtUs: beginUs, resolvedAtUs: null },
  change: 'raised',
});

function urlSender(url: string, timeoutMs?: number) {
  const variable = 'EARSHOT_ALERT_URL';
  const timing = timeoutMs === undefined ? {} : { timeoutMs };
  return createUrlSender({ url, variable, fetch, random: () => 0.5, ...timing });
}

/** Raises these findings; all findings count as checked. */
function raise({ store }: TestContext, findings: readonly AlertFinding[], atUs: number) {
  const checked = [finding(), finding({ subject: 'lake' }), ...findings];
  return store.alerts.settleFindings({ checked, findings, channels: ['url', 'command'], atUs });
}

describe('a message', () => {
  it('has a text for chat systems, without mentions and markup', () => {
    expect(message).toMatchObject({ version: 1, id: 'alert_3_7', alert: 3, resolvedAt: null });
    expect(message.text.split('\n')).toEqual([
      'earshot: warning: sink (bus)',
      'The sink bus has a backlog.',
      'It waits for 20 min.',
      'The last failure: ‹!channel› (at)all https://x.example',
      'Next: See to it.',
    ]);
  });

  it('of a resolved alert names its problem', () => {
    const alert = { ...finding(), id: 3, raisedAtUs: beginUs, resolvedAtUs: beginUs + dayUs };
    const { text, resolvedAt } = alertMessage({ id: 8, alert, change: 'resolved' });
    expect(text).toBe('earshot: resolved: sink (bus)\nProblem: The sink bus has a backlog.');
    expect(resolvedAt).not.toBeNull();
  });
});

describe('a URL', () => {
  it('receives the message as JSON, once', async () => {
    const server = await startServer([{ status: 204 }]);
    await urlSender(`${server.url}/hooks/T0/secret-token`)(message, signal);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ method: 'POST', path: '/hooks/T0/secret-token' });
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(message);
  });

  it.each([302, 404, 500])(
    'that answers %i has not acknowledged the message, and is not shown in full',
    async (status) => {
      const body = 'no team at /hooks/T0/secret-token (secret-token)';
      const server = await startServer([{ status, body }]);
      const sending = urlSender(`${server.url}/hooks/T0/secret-token`)(message, signal);
      const error = await sending.catch((reason: unknown) => reason);
      if (!(error instanceof AppError)) throw error;
      expect(errorText(error)).toContain(`answered ${status}: no team at …`);
      expect(errorText(error)).toContain('EARSHOT_ALERT_URL');
      expect(errorText(error)).not.toContain('secret-token');
      expect(server.requests).toHaveLength(1);
    },
  );

  it.each<[string, Answer]>([
    ['large', { body: 'a'.repeat(answerBytesMax + 1) }],
    ['slow', (response) => void response.writeHead(200).write('a')],
    [
      'cut',
      (response) => {
        response.writeHead(200, { 'content-length': '100' }).write('a');
        setImmediate(() => response.destroy());
      },
    ],
  ])(
    'that answers 200 has acknowledged the message, even if its answer is %s',
    async (_name, answer) => {
      const server = await startServer([answer]);
      await urlSender(`${server.url}/x`, 5_000)(message, signal);
      expect(server.requests).toHaveLength(1);
    },
  );

  it('that refuses is reported, even if the rest of its answer never arrives', async () => {
    const server = await startServer([
      (response) => void response.writeHead(404).write('no such team'),
    ]);
    const sending = urlSender(`${server.url}/x`, 10_000)(message, signal);
    await expect(sending).rejects.toMatchObject({
      text: expect.stringContaining('answered 404: no such team. Check'),
    });
  });

  it('that hangs is aborted at the timeout, and when the program stops', async () => {
    const server = await startServer(['hang']);
    const late = urlSender(`${server.url}/secret-token`, 50)(message, signal);
    await expect(late).rejects.toThrow('did not answer in time');
    const ending = new AbortController();
    const ended = urlSender(`${server.url}/secret-token`)(message, ending.signal);
    const outcome = expect(ended).rejects.toThrow();
    await vi.waitFor(() => expect(server.requests).toHaveLength(2));
    ending.abort();
    await outcome;
  });
});

describe('a command', () => {
  const ending = (exitCode: number | null, stderr = '') => {
    const runs: [readonly string[], string][] = [];
    const run: RunProgram = async (command, stdin) => {
      runs.push([command, stdin]);
      return { exitCode, signal: null, timedOut: exitCode === null, stdout: '', stderr };
    };
    const command = ['notify-me', '--urgent'];
    const variable = 'EARSHOT_ALERT_COMMAND';
    return { runs, sendAlert: createCommandSender({ command, run, variable }) };
  };

  it('receives the message as a line of JSON, and acknowledges it with exit code 0', async () => {
    const { runs, sendAlert } = ending(0);
    await sendAlert(message, signal);
    expect(runs).toEqual([[['notify-me', '--urgent'], `${JSON.stringify(message)}\n`]]);
  });

  it('with another exit code has not acknowledged the message', async () => {
    await expect(ending(3, 'no \u001b[31mmail').sendAlert(message, signal)).rejects.toMatchObject({
      text: expect.stringContaining(
        'exited with 3: no \\u001b[31mmail. Check EARSHOT_ALERT_COMMAND.',
      ),
    });
    await expect(ending(null).sendAlert(message, signal)).rejects.toThrow('timed out');
  });
});

describe('a due delivery', () => {
  it('is sent once, oldest first, an alert before its end', async () => {
    const opened = await openContext();
    const { context, sent } = opened;
    await raise(opened, [finding()], beginUs);
    await raise(opened, [finding(), finding({ subject: 'lake' })], beginUs);
    await raise(opened, [finding({ subject: 'lake' })], beginUs);
    for (let round = 0; round < 3; round += 1) await deliverDue(context, 'url', signal);
    expect(sent.map(({ change, subject }) => `${change} ${subject}`)).toEqual(
      expect.arrayContaining(['raised bus', 'raised lake', 'resolved bus']),
    );
    expect(sent).toHaveLength(3);
    expect(sent.findIndex(({ change }) => change === 'resolved')).toBeGreaterThan(
      sent.findIndex(({ subject }) => subject === 'bus'),
    );
  });

  it('that is refused is retried at growing intervals for about a day, then abandoned', async () => {
    const opened = await openContext({
      sendAlert: () => Promise.reject(new AppError('unavailable', 'It answered 500.')),
    });
    const { context, setNow, store } = opened;
    await raise(opened, [finding()], beginUs);
    const tries: number[] = [];
    for (let minute = 0; minute <= 30 * 60; minute += 1) {
      const nowUs = beginUs + minute * minuteUs;
      setNow(nowUs);
      const due = await store.alerts.dueDeliveries({ nowUs, limit: 9 });
      if (!due.some(({ channel }) => channel === 'url')) continue;
      tries.push(minute);
      await deliverDue(context, 'url', signal);
    }
    expect(tries.slice(0, 7)).toEqual([0, 1, 3, 7, 15, 31, 63]);
    expect(tries).toHaveLength(30);
    expect(tries.at(-1)).toBeGreaterThan(22 * 60);
    expect(tries.at(-1)).toBeLessThan(26 * 60);
    const unsentDeliveries = await store.alerts.unsentDeliveries(beginUs + 30 * hourUs);
    expect(unsentDeliveries.find(({ channel }) => channel === 'url')).toMatchObject({
      isGivenUp: true,
      error: 'It answered 500.',
    });
  });

  it('stays unchanged when the program stops meanwhile', async () => {
    const ending = new AbortController();
    const opened = await openContext({
      sendAlert: () => {
        ending.abort();
        return Promise.reject(new Error('aborted'));
      },
    });
    await raise(opened, [finding()], beginUs);
    await deliverDue(opened.context, 'url', ending.signal);
    const due = await opened.store.alerts.dueDeliveries({ nowUs: beginUs, limit: 9 });
    expect(due.find(({ channel }) => channel === 'url')).toMatchObject({
      attempts: 0,
      error: null,
    });
  });

  it('is not delayed by a thousand deliveries that wait for another channel', async () => {
    const opened = await openContext({ channels: ['url', 'command'] });
    const { alerts } = opened.store;
    const many = Array.from({ length: 1_000 }, (_, i) => finding({ subject: `sink-${i}` }));
    await alerts.settleFindings({ checked: [], findings: many, channels: ['url'], atUs: beginUs });
    const findings = [finding()];
    await alerts.settleFindings({ checked: [], findings, channels: ['command'], atUs: beginUs });
    expect(await deliverDue(opened.context, 'command', signal)).toBe(1);
    expect(opened.sent.map(({ subject }) => subject)).toEqual(['bus']);
  });

  it('for a channel that is no longer configured is abandoned by the watchdog, and refused', async () => {
    const opened = await openContext({ channels: ['command'] });
    await raise(opened, [finding()], beginUs);
    const watchdog = startWatchdog(opened.context, { firstMs: 60_000, deliveryIntervalMs: 5 });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(async () =>
      expect(await opened.store.alerts.unsentDeliveries(beginUs)).toMatchObject([
        {
          channel: 'url',
          isGivenUp: true,
          error: 'The channel url is no longer configured for alerts.',
        },
      ]),
    );
    expect(opened.sent).toHaveLength(1);
    const sendAlert = sendThrough({ command: async () => undefined });
    await sendAlert('command', message, signal);
    await expect(sendAlert('url', message, signal)).rejects.toMatchObject({
      code: 'configuration',
    });
  });
});

describe('the watchdog', () => {
  it('checks and sends through one channel while the other hangs, and stops in time', async () => {
    const sent: string[] = [];
    const opened = await openContext({
      channels: ['url', 'command'],
      probes: {
        ...quiet,
        disk: async () => ({ freeBytes: 1, totalBytes: 2 ** 40, reserveBytes: 0 }),
      },
      sendAlert: (channel, { kind }) => {
        if (channel === 'url') return new Promise(() => undefined);
        sent.push(kind);
        return Promise.resolve();
      },
    });
    const watchdog = startWatchdog(opened.context, {
      firstMs: 1,
      intervalMs: 20,
      deliveryIntervalMs: 5,
    });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(() => expect(sent).toEqual(['disk']));
    opened.context.probes.disk = async () => ({
      freeBytes: 2 ** 40,
      totalBytes: 2 ** 40,
      reserveBytes: 0,
    });
    await vi.waitFor(async () => expect(await opened.activeAlerts()).toEqual([]));
    await vi.waitFor(() => expect(sent).toEqual(['disk', 'disk']));
    await watchdog.stop();
  });
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
  it('is sent once an hour when it is critical', async () => {
    const { context, check, sent, logged, checkAt } = await openFull();
    await check();
    await check();
    expect(sent).toMatchObject([{ kind: 'disk', severity: 'critical', change: 'raised' }]);
    await checkAt(beginUs + hourUs);
    expect(sent).toHaveLength(2);
    expect(new Set(sent.map(({ id }) => id)).size).toBe(2);
    expect(logged).toContainEqual(
      expect.objectContaining({ fields: { reason: 'The disk is full.' } }),
    );
    // The store cannot be read, either.
    context.alerts = { ...context.alerts, alerts: full };
    await checkAt(beginUs + 2 * hourUs);
    await vi.waitFor(() => expect(sent).toHaveLength(3));
  });

  it('is sent again in the next round, only through channels that did not acknowledge it', async () => {
    let isDown = true;
    const tried: string[] = [];
    const { check, setNow, checkAt } = await openFull({
      channels: ['url', 'command'],
      sendAlert: async (channel) => {
        tried.push(channel);
        if (channel === 'url' && isDown) throw new AppError('unavailable', 'It answered 500.');
      },
    });
    await check();
    setNow(beginUs + minuteUs);
    isDown = false;
    await check();
    await checkAt(beginUs + 2 * minuteUs);
    expect(tried).toEqual(['url', 'command', 'url']);
  });

  it('is sent again when the clock was set back', async () => {
    const { sent, checkAt } = await openFull();
    await checkAt(beginUs + dayUs);
    await checkAt(beginUs);
    expect(sent).toHaveLength(2);
  });

  it('is aborted when the program stops', async () => {
    const begun: AbortSignal[] = [];
    const { context, logged } = await openFull({
      sendAlert: (_channel, _message, signal) => {
        begun.push(signal);
        return delay(600_000, undefined, { signal });
      },
    });
    const watchdog = startWatchdog(context, { firstMs: 1 });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(() => expect(begun).toHaveLength(1), { timeout: 20_000 });
    await watchdog.stop();
    expect(begun.map(({ aborted }) => aborted)).toEqual([true]);
    await delay(0);
    expect(logged.map(({ message }) => message)).not.toContain('failed to send an alert');
  });
});

describe('foreign text', () => {
  it('has no markup and no address that a chat would link', () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...'[](a)`*_~| :/é_-') }), (words) => {
        expect(quoted(words)).not.toMatch(/[[\]`*~|]|:\/\/|(^|[^a-zé])_|_($|[^a-zé])/);
      }),
    );
  });

  it('stays readable', () => {
    expect(quoted('500: [reset](https://evil.example/p) **now** `x` _y_')).toBe(
      "500: (reset)(https : //evil.example/p) ∗∗now∗∗ 'x' ‗y‗",
    );
    const plain = 'it answered 500 (UND_ERR_SOCKET): S2A_MSIL2A is not known, 3 > 2.';
    expect(quoted(plain)).toBe(plain);
  });
});

const options = {
  alertUrl: null,
  alertCommand: null,
  findProgram: (program: string) => (program === 'notify' ? null : 'it is not a file'),
  signal: new AbortController().signal,
};

describe('the check of alerts', () => {
  it('warns when no notification channel is configured', async () => {
    expect(await checkAlerts(options)).toMatchObject([
      { state: 'warn', advice: expect.stringMatching(/EARSHOT_ALERT_URL.*EARSHOT_ALERT_COMMAND/) },
    ]);
  });

  it('checks each channel, posts nothing, and does not reveal the URL', async () => {
    const hook = await startHook();
    const alertUrl = `${hook.url}/secret-part`;
    const both = await checkAlerts({ ...options, alertUrl, alertCommand: ['notify', '--urgent'] });
    expect(both).toMatchObject([{ state: 'pass' }, { state: 'pass' }]);
    expect(hook.received).toEqual([]);
    expect(JSON.stringify(both)).not.toContain('secret-part');
  });

  it('reports what cannot be reached or run', async () => {
    const alertUrl = `http://127.0.0.1:${await freePort()}/secret-part`;
    const both = await checkAlerts({ ...options, alertUrl, alertCommand: ['./gone'] });
    expect(both).toMatchObject([
      { state: 'fail', message: expect.stringContaining('ECONNREFUSED') },
      { state: 'fail', message: './gone cannot be run: it is not a file.' },
    ]);
    expect(JSON.stringify(both)).not.toContain('secret-part');
  });

  it('stops at once when aborted', async () => {
    const signal = AbortSignal.abort();
    const [finding] = await checkAlerts({ ...options, alertUrl: 'http://127.0.0.1:9/', signal });
    expect(finding).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('was cancelled'),
    });
  });
});

function start(dataDir: string, url: string): ChildProcess {
  const file = join(import.meta.dirname, 'alert-kill-child.ts');
  const child = fork(file, [dataDir, url], { execArgv: [] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function killed(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  expect(await ended).toEqual([null, 'SIGKILL']);
}

describe('an alert', () => {
  it('is sent by the next program when the first was killed before or while it sent it', async () => {
    const dataDir = temporaryDirectory();
    // The first message arrives, but is not acknowledged before the kill.
    const chat = await startServer(['hang', { status: 204 }]);
    const first = start(dataDir, chat.url);
    await once(first, 'message');
    await killed(first);
    expect(chat.requests).toEqual([]);

    const second = start(dataDir, chat.url);
    await once(second, 'message');
    second.send('send');
    await vi.waitFor(() => expect(chat.requests).toHaveLength(1), { timeout: 10_000 });
    await killed(second);

    const third = start(dataDir, chat.url);
    await once(third, 'message');
    third.send('send');
    await vi.waitFor(() => expect(chat.requests).toHaveLength(2), { timeout: 10_000 });
    const store = await openStore({ dataDir, nowUs: () => 0 });
    onTestFinished(() => store.close());
    const nowUs = Date.now() * 1_000;
    await vi.waitFor(async () => expect(await store.alerts.unsentDeliveries(nowUs)).toEqual([]));
    await killed(third);

    const [one, other] = chat.requests.map(({ body }) => JSON.parse(body));
    expect(one).toMatchObject({ kind: 'disk', change: 'raised', alert: 1 });
    expect(other.id).toBe(one.id);
    expect(await store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
  });
});
