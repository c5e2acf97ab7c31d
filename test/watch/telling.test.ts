/** Telling alerts: what a URL and a command are given, and that nothing is lost when they fail or hang. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { AlertFinding } from '../../src/domain/alerts.ts';
import { AppError, errorText } from '../../src/domain/app-error.ts';
import type { RunProgram } from '../../src/host/run-program.ts';
import { answerBytesMax } from '../../src/http/bounded-fetch.ts';
import { alertMessage } from '../../src/watch/alert-message.ts';
import {
  createCommandTeller,
  createUrlTeller,
  deliverDue,
  tellThrough,
} from '../../src/watch/notify.ts';
import { startWatchdog } from '../../src/watch/watchdog.ts';
import { type Answer, startServer } from '../http/answering-server.ts';
import { beginUs, dayUs, hourUs, minuteUs, openWorld, type TestWorld } from './watch-world.ts';

const { signal } = new AbortController();

const finding = (fields: Partial<AlertFinding> = {}): AlertFinding => ({
  kind: 'sink',
  subject: 'bus',
  severity: 'warning',
  cause: 'The sink bus is behind.',
  evidence: ['It waits for 20 min.', 'The last failure: <!channel> @all https://x.example'],
  nextStep: 'See to it.',
  ...fields,
});

const message = alertMessage({
  id: 7,
  alert: { ...finding(), id: 3, raisedAtUs: beginUs, resolvedAtUs: null },
  change: 'raised',
});

function urlTeller(url: string, timeoutMs?: number) {
  const variable = 'EARSHOT_ALERT_URL';
  const timing = timeoutMs === undefined ? {} : { timeoutMs };
  return createUrlTeller({ url, variable, fetch, random: () => 0.5, ...timing });
}

/** Raises what is given, all of it checked. */
function raise({ store }: TestWorld, findings: readonly AlertFinding[], atUs: number) {
  const checked = [finding(), finding({ subject: 'lake' }), ...findings];
  return store.alerts.settleFindings({ checked, findings, channels: ['url', 'command'], atUs });
}

describe('a message', () => {
  it('has a text that chat systems show, in which nobody is called and no markup is', () => {
    expect(message).toMatchObject({ version: 1, id: 'alert_3_7', alert: 3, resolvedAt: null });
    expect(message.text.split('\n')).toEqual([
      'earshot: warning: sink of bus',
      'The sink bus is behind.',
      'It waits for 20 min.',
      'The last failure: ‹!channel› (at)all https://x.example',
      'Next: See to it.',
    ]);
  });

  it('says of an end what it was that ended', () => {
    const alert = { ...finding(), id: 3, raisedAtUs: beginUs, resolvedAtUs: beginUs + dayUs };
    const { text, resolvedAt } = alertMessage({ id: 8, alert, change: 'resolved' });
    expect(text).toBe('earshot: resolved: sink of bus\nIt was: The sink bus is behind.');
    expect(resolvedAt).not.toBeNull();
  });
});

describe('a URL', () => {
  it('gets the message as JSON, once', async () => {
    const server = await startServer([{ status: 204 }]);
    await urlTeller(`${server.url}/hooks/T0/secret-token`)(message, signal);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]).toMatchObject({ method: 'POST', path: '/hooks/T0/secret-token' });
    expect(JSON.parse(server.requests[0]?.body ?? '')).toEqual(message);
  });

  it.each([302, 404, 500])(
    'that answers %i has not taken it, and is not named in full',
    async (status) => {
      const body = 'no team at /hooks/T0/secret-token (secret-token)';
      const server = await startServer([{ status, body }]);
      const telling = urlTeller(`${server.url}/hooks/T0/secret-token`)(message, signal);
      const error = await telling.catch((reason: unknown) => reason);
      if (!(error instanceof AppError)) throw error;
      expect(errorText(error)).toContain(`answered ${status}, saying: no team at …`);
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
  ])('that answers 200 has taken it, though its answer is %s', async (_name, answer) => {
    const server = await startServer([answer]);
    await urlTeller(`${server.url}/x`, 5_000)(message, signal);
    expect(server.requests).toHaveLength(1);
  });

  it('that refuses says so, though the rest of its answer never comes', async () => {
    const server = await startServer([
      (response) => void response.writeHead(404).write('no such team'),
    ]);
    const telling = urlTeller(`${server.url}/x`, 10_000)(message, signal);
    await expect(telling).rejects.toMatchObject({
      text: expect.stringContaining('answered 404, saying: no such team. Check'),
    });
  });

  it('that hangs is left after the timeout, and when the program ends', async () => {
    const server = await startServer(['hang']);
    const late = urlTeller(`${server.url}/secret-token`, 50)(message, signal);
    await expect(late).rejects.toThrow('did not answer in time');
    const ending = new AbortController();
    const ended = urlTeller(`${server.url}/secret-token`)(message, ending.signal);
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
    const command = ['tell-me', '--urgent'];
    const variable = 'EARSHOT_ALERT_COMMAND';
    return { runs, tell: createCommandTeller({ command, run, variable }) };
  };

  it('gets the message as a line of JSON, and takes it by ending with 0', async () => {
    const { runs, tell } = ending(0);
    await tell(message, signal);
    expect(runs).toEqual([[['tell-me', '--urgent'], `${JSON.stringify(message)}\n`]]);
  });

  it('that ends otherwise has not taken it', async () => {
    await expect(ending(3, 'no \u001b[31mmail').tell(message, signal)).rejects.toMatchObject({
      text: expect.stringContaining(
        'ended with 3, saying: no \ufffd[31mmail. Check EARSHOT_ALERT_COMMAND.',
      ),
    });
    await expect(ending(null).tell(message, signal)).rejects.toThrow('did not end in time');
  });
});

describe('what is due', () => {
  it('is told oldest first, an alert before its end, and not again', async () => {
    const opened = await openWorld();
    const { world, told } = opened;
    await raise(opened, [finding()], beginUs);
    await raise(opened, [finding(), finding({ subject: 'lake' })], beginUs);
    await raise(opened, [finding({ subject: 'lake' })], beginUs);
    for (let round = 0; round < 3; round += 1) await deliverDue(world, 'url', signal);
    expect(told.map(({ change, subject }) => `${change} ${subject}`)).toEqual(
      expect.arrayContaining(['raised bus', 'raised lake', 'resolved bus']),
    );
    expect(told).toHaveLength(3);
    expect(told.findIndex(({ change }) => change === 'resolved')).toBeGreaterThan(
      told.findIndex(({ subject }) => subject === 'bus'),
    );
  });

  it('and refused is tried again at growing intervals for about a day, then given up', async () => {
    const opened = await openWorld({
      tell: () => Promise.reject(new AppError('unavailable', 'It answered 500.')),
    });
    const { world, setNow, store } = opened;
    await raise(opened, [finding()], beginUs);
    const tries: number[] = [];
    for (let minute = 0; minute <= 30 * 60; minute += 1) {
      const nowUs = beginUs + minute * minuteUs;
      setNow(nowUs);
      const due = await store.alerts.dueDeliveries({ nowUs, limit: 9 });
      if (!due.some(({ channel }) => channel === 'url')) continue;
      tries.push(minute);
      await deliverDue(world, 'url', signal);
    }
    expect(tries.slice(0, 7)).toEqual([0, 1, 3, 7, 15, 31, 63]);
    expect(tries).toHaveLength(30);
    expect(tries.at(-1)).toBeGreaterThan(22 * 60);
    expect(tries.at(-1)).toBeLessThan(26 * 60);
    const untold = await store.alerts.untold(beginUs + 30 * hourUs);
    expect(untold.find(({ channel }) => channel === 'url')).toMatchObject({
      isGivenUp: true,
      error: 'It answered 500.',
    });
  });

  it('waits no longer for a channel that never answers than its time', async () => {
    const waits: number[] = [];
    const opened = await openWorld({
      tell: () => new Promise(() => undefined),
      pause: async (ms) => void waits.push(ms),
    });
    await raise(opened, [finding()], beginUs);
    expect(await deliverDue(opened.world, 'url', signal)).toBe(0);
    expect(waits).toEqual([35_000]);
    const [first] = await opened.store.alerts.untold(beginUs);
    expect(first).toMatchObject({ attempts: 1, error: 'It did not end in time.' });
  });

  it('stays as it was when the program ends meanwhile', async () => {
    const ending = new AbortController();
    const opened = await openWorld({
      tell: () => {
        ending.abort();
        return Promise.reject(new Error('aborted'));
      },
    });
    await raise(opened, [finding()], beginUs);
    await deliverDue(opened.world, 'url', ending.signal);
    const due = await opened.store.alerts.dueDeliveries({ nowUs: beginUs, limit: 9 });
    expect(due.find(({ channel }) => channel === 'url')).toMatchObject({
      attempts: 0,
      error: null,
    });
  });

  it('through a channel is not held up by a thousand others that wait for another one', async () => {
    const opened = await openWorld({ channels: ['url', 'command'] });
    const { alerts } = opened.store;
    const many = Array.from({ length: 1_000 }, (_, i) => finding({ subject: `sink-${i}` }));
    await alerts.settleFindings({ checked: [], findings: many, channels: ['url'], atUs: beginUs });
    const findings = [finding()];
    await alerts.settleFindings({ checked: [], findings, channels: ['command'], atUs: beginUs });
    expect(await deliverDue(opened.world, 'command', signal)).toBe(1);
    expect(opened.told.map(({ subject }) => subject)).toEqual(['bus']);
  });

  it('for a channel that is set up no longer is given up by the watchdog, and refused', async () => {
    const opened = await openWorld({ channels: ['command'] });
    await raise(opened, [finding()], beginUs);
    const watchdog = startWatchdog(opened.world, { firstMs: 60_000, tellEveryMs: 5 });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(async () =>
      expect(await opened.store.alerts.untold(beginUs)).toMatchObject([
        { channel: 'url', isGivenUp: true, error: 'No url is set up for alerts any more.' },
      ]),
    );
    expect(opened.told).toHaveLength(1);
    const tell = tellThrough({ command: async () => undefined });
    await tell('command', message, signal);
    await expect(tell('url', message, signal)).rejects.toMatchObject({ code: 'configuration' });
  });
});

describe('the watchdog', () => {
  it('looks and tells through one channel while the other hangs, and stops in time', async () => {
    const told: string[] = [];
    const opened = await openWorld({
      channels: ['url', 'command'],
      probes: {
        certificate: async () => null,
        disk: async () => ({ freeBytes: 1, totalBytes: 2 ** 40, reserveBytes: 0 }),
        intake: async () => null,
      },
      tell: (channel, { kind }) => {
        if (channel === 'url') return new Promise(() => undefined);
        told.push(kind);
        return Promise.resolve();
      },
    });
    const watchdog = startWatchdog(opened.world, { firstMs: 1, intervalMs: 20, tellEveryMs: 5 });
    onTestFinished(() => watchdog.stop());
    await vi.waitFor(() => expect(told).toEqual(['disk']));
    opened.world.probes.disk = async () => ({
      freeBytes: 2 ** 40,
      totalBytes: 2 ** 40,
      reserveBytes: 0,
    });
    await vi.waitFor(async () => expect(await opened.lasting()).toEqual([]));
    await vi.waitFor(() => expect(told).toEqual(['disk', 'disk']));
    await watchdog.stop();
  });
});
