/** The whole publishing half over real sockets: from its options to what the endpoint has seen. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { SandboxConfigurationError } from '../../src/sandbox/configuration-error.ts';
import { demoFaults } from '../../src/sandbox/delivery/faults.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { type Answer, startTrustedEndpoint } from './recording-endpoint.ts';

const credentials = { username: 'catalogue', password: 'secret', now: Date.now };
const fast = { ratePerSecond: 1_000, retryDelaysMs: [5, 5, 5] } satisfies Partial<SandboxOptions>;

async function startWorld(options: Partial<SandboxOptions>, answer?: Answer) {
  const { url, requests, connections, trustedCaPems } = await startTrustedEndpoint(answer);
  const endpoint = url.href;
  const sandbox = await startSandbox({
    ...credentials,
    ...fast,
    endpoint,
    trustedCaPems,
    ...options,
  });
  onTestFinished(sandbox.close);
  return { sandbox, requests, connections };
}

async function writeRecords(lines: string[]): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'earshot-sandbox-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const file = join(folder, 'records.jsonl');
  await writeFile(file, lines.join('\n'));
  return file;
}

const productIdOf = ({ body }: { body: Buffer }) => JSON.parse(body.toString()).ProductId;

describe('the sandbox', () => {
  it('delivers 200 products quickly, each exactly once', async () => {
    const startedMs = performance.now();
    const { sandbox, requests } = await startWorld({ count: 200 });
    expect(await sandbox.finished).toMatchObject({ published: 200, delivered: 200, attempts: 200 });
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(requests).toHaveLength(200);
    expect(new Set(requests.map(productIdOf)).size).toBe(200);
  });

  it('sends everything twice when duplicates are certain', async () => {
    const { sandbox, requests } = await startWorld({ count: 20, faults: { duplicate: 1 } });
    expect(await sandbox.finished).toMatchObject({ delivered: 20, duplicatesSent: 20 });
    const bodies = Map.groupBy(requests, ({ body }) => body.toString());
    expect(bodies.size).toBe(20);
    for (const same of bodies.values()) expect(same).toHaveLength(2);
  });

  it('loses for the sender what the endpoint has when every answer is lost', async () => {
    const { sandbox, requests } = await startWorld({ count: 5, faults: { answerLost: 1 } });
    expect(await sandbox.finished).toMatchObject({ lost: 5, delivered: 0, accepted: 5 });
    expect(requests).toHaveLength(20);
  });

  it('lets an endpoint that only answers 503 see each notification four times', async () => {
    const { sandbox, requests } = await startWorld({ count: 5 }, () => 503);
    expect(await sandbox.finished).toMatchObject({ lost: 5, attempts: 20, accepted: 0 });
    expect(requests).toHaveLength(20);
  });

  it('accounts for every request and every loss of a faulty run', async () => {
    const settled: string[] = [];
    const { sandbox, requests } = await startWorld({
      count: 200,
      modifiedShare: 0.2,
      deletedShare: 0.1,
      faults: demoFaults,
      onSettled: ({ outcome }) => settled.push(outcome),
    });
    const totals = await sandbox.finished;
    const seen = new Set(requests.map(({ body }) => body.toString()));
    const entries = sandbox.entries();
    expect(totals.published).toBeGreaterThan(200);
    expect(totals).toMatchObject({ pending: 0, receivedOk: requests.length, accepted: seen.size });
    expect(totals.duplicatesSent).toBe(requests.length - seen.size);
    expect(totals.duplicatesSent).toBeGreaterThan(0);
    expect(totals.lost).toBeGreaterThan(0);
    expect(settled.filter((outcome) => outcome === 'lost')).toHaveLength(totals.lost);
    expect(settled).toHaveLength(totals.published);
    const lost = entries.filter(({ outcome }) => outcome === 'lost');
    expect(lost.every(({ reason }) => reason?.startsWith('4 attempts failed'))).toBe(true);
    expect(entries.filter(({ timesReceivedOk }) => timesReceivedOk > 0)).toHaveLength(seen.size);
  });

  it('publishes the same products and the same fates for the same seed', async () => {
    const fates = async (seed: number) => {
      const { sandbox } = await startWorld({
        count: 60,
        seed,
        faults: demoFaults,
        modifiedShare: 0.3,
      });
      await sandbox.finished;
      const { subscriptionId } = sandbox;
      const entries = sandbox
        .entries()
        .map(({ productId, event, outcome, attempts }) => [
          productId,
          event,
          outcome,
          attempts.length,
        ]);
      return { subscriptionId, entries };
    };
    const first = await fates(11);
    expect(await fates(11)).toEqual(first);
    expect((await fates(12)).subscriptionId).not.toBe(first.subscriptionId);
  });

  it('publishes the records of a file and then is finished', async () => {
    const recordsFile = await writeRecords(['{"Id":"a","Name":"A"}', '', '{"Id":"b","Name":"B"}']);
    const { sandbox, requests } = await startWorld({ recordsFile });
    expect(await sandbox.finished).toMatchObject({ published: 2, delivered: 2 });
    expect(requests.map(productIdOf).sort()).toEqual(['a', 'b']);
  });

  it('is steered through its control port', async () => {
    const { sandbox, requests } = await startWorld({ count: 0 });
    expect(sandbox.controlUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const post = (path: string, method: string, body: object) =>
      fetch(`${sandbox.controlUrl}${path}`, { method, body: JSON.stringify(body) });
    await post('/faults', 'PATCH', { arrayBody: 1, ackIdAbsent: 1 });
    expect((await post('/publish', 'POST', { count: 3 })).status).toBe(200);
    await expect.poll(() => sandbox.totals().delivered).toBe(3);
    const totals = await (await fetch(`${sandbox.controlUrl}/totals`)).json();
    expect(totals).toEqual(sandbox.totals());
    for (const { body } of requests) {
      const items = JSON.parse(body.toString());
      expect(items).toHaveLength(1);
      expect(items[0]).not.toHaveProperty('AckId');
    }
  });

  it('takes orders without a body, and refuses a wrong method', async () => {
    const { sandbox } = await startWorld({ count: 0 });
    const status = async (path: string) =>
      (await fetch(`${sandbox.controlUrl}${path}`, { method: 'POST' })).status;
    expect([await status('/pause'), await status('/resume'), await status('/totals')]).toEqual([
      200, 200, 405,
    ]);
  });

  it('tells why each failed attempt failed', async () => {
    const failures: (string | null)[] = [];
    const { sandbox } = await startWorld({
      count: 1,
      faults: { connectionFails: 1 },
      onAttempt: (failure) => failures.push(failure),
    });
    await sandbox.finished;
    expect(failures).toHaveLength(4);
    expect(failures[0]).toContain('the connection failed (played by the sandbox)');
  });

  it('passes on what the listener for settled notifications threw', async () => {
    const { sandbox } = await startWorld({
      count: 1,
      onSettled: () => {
        throw new Error('the listener broke');
      },
    });
    await expect(sandbox.finished).rejects.toThrow('the listener broke');
  });
});

describe('closing the sandbox', () => {
  /**
   * Runs a sandbox in a process of its own, which closes it once its input ends. Nothing but the
   * sandbox could keep that process alive, so that its end proves that no handle is left.
   */
  function runInProcess(options: Partial<SandboxOptions>) {
    const script = `
      import { once } from 'node:events';
      const { startSandbox } = await import(process.env.SANDBOX_MODULE);
      const options = JSON.parse(process.env.SANDBOX_OPTIONS);
      const sandbox = await startSandbox({ ...options, now: Date.now });
      process.stdin.resume();
      await once(process.stdin, 'end');
      await sandbox.close();
      console.log(JSON.stringify(await sandbox.finished));`;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
      env: {
        SANDBOX_MODULE: new URL('../../src/sandbox/sandbox.ts', import.meta.url).href,
        SANDBOX_OPTIONS: JSON.stringify(options),
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  }

  it.each([
    ['hangs', 'hang'],
    ['fails', 503],
    ['answers', 200],
  ] as const)('in the middle, with an endpoint that %s, leaves no handle', async (_, answer) => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint(() => answer);
    const { now: _now, ...account } = credentials;
    const child = runInProcess({
      ...account,
      endpoint: url.href,
      trustedCaPems,
      ratePerSecond: 1_000,
      faults: { outOfOrder: 0.2, duplicate: 0.5 },
    });
    await vi.waitFor(() => expect(requests.length).toBeGreaterThanOrEqual(8), 10_000);
    const startedMs = performance.now();
    child.stdin.end();
    const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(performance.now() - startedMs).toBeLessThan(8_000);
    expect(child.exitCode).toBe(0);
    expect(JSON.parse(printed).published).toBeGreaterThanOrEqual(8);
  });

  it('ends the connections that it kept open to the endpoint', async () => {
    const { sandbox, connections } = await startWorld({ count: 20 });
    await sandbox.finished;
    expect(await connections()).toBeGreaterThan(0);
    await sandbox.close();
    await expect.poll(() => connections()).toBe(0);
  });

  it('closes the control port and keeps what is not delivered as pending', async () => {
    const { sandbox, requests } = await startWorld({ count: 10 }, () => 'hang');
    await expect.poll(() => requests).toHaveLength(8);
    await sandbox.close();
    await expect(fetch(`${sandbox.controlUrl}/totals`)).rejects.toThrow();
    expect(await sandbox.finished).toMatchObject({ delivered: 0, lost: 0 });
    expect(sandbox.totals().pending).toBe(sandbox.totals().published);
  });

  it('may be repeated', async () => {
    const { sandbox } = await startWorld({ count: 1 });
    await sandbox.close();
    await expect(sandbox.close()).resolves.toBeUndefined();
  });
});

describe('starting the sandbox', () => {
  const complete: SandboxOptions = { ...credentials, endpoint: 'https://localhost:1/', count: 0 };

  it.each<[string, Partial<SandboxOptions> | Record<string, unknown>, RegExp]>([
    ['an unknown option', { sead: 1 }, /sead/],
    ['an endpoint that is no URL', { endpoint: 'localhost' }, /endpoint/],
    [
      'an endpoint of another machine',
      { endpoint: 'https://endpoint.example/' },
      /not on this machine/,
    ],
    ['plain HTTP', { endpoint: 'http://localhost:1/' }, /https/],
    ['a rate of 0', { ratePerSecond: 0 }, /ratePerSecond/],
    ['a share beyond 1', { modifiedShare: 2 }, /modifiedShare/],
    ['an unknown fault', { faults: { duplicat: 1 } }, /faults.*duplicat/],
    ['too few retry delays', { retryDelaysMs: [1, 2] }, /retryDelaysMs/],
    ['a control address without a port', { controlListen: '127.0.0.1' }, /host:port/],
    ['a control port for everyone', { controlListen: '0.0.0.0:0' }, /will not listen/],
    ['no clock', { now: 'now' }, /now: expected a function/],
  ])('refuses %s', async (_, changes, message) => {
    // The cast lets a test make the mistakes that the types forbid.
    const options = { ...complete, ...changes } as SandboxOptions;
    const starting = startSandbox(options);
    await expect(starting).rejects.toThrow(SandboxConfigurationError);
    await expect(starting).rejects.toThrow(message);
  });

  it('names every fault at once and repeats no password', async () => {
    const wrong = { ...complete, seed: 0.5, count: -1, password: 'hunter2' };
    await expect(startSandbox(wrong)).rejects.toThrow(/^(?!.*hunter2).*seed: .*count: /);
  });

  it('refuses a records file that is not there, naming it', async () => {
    const starting = startSandbox({ ...complete, recordsFile: '/nowhere/records.jsonl' });
    await expect(starting).rejects.toThrow('/nowhere/records.jsonl');
  });
});
