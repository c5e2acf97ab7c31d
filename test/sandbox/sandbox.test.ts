/** Publishing over real sockets, from the options to the requests at the endpoint. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { demoFaults } from '../../src/sandbox/delivery/faults.ts';
import { SandboxConfigurationError } from '../../src/sandbox/live-settings.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import {
  type EndpointAnswer,
  jsonOf,
  recordsFileOf,
  send,
  startTestSandbox,
  startTrustedEndpoint,
  turn,
} from './set-up.ts';

const credentials = { username: 'catalogue', password: 'secret', now: Date.now };
const fast = { ratePerSecond: 1_000, retryDelaysMs: [5, 5, 5] } satisfies Partial<SandboxOptions>;

async function startPublishing(options: Partial<SandboxOptions>, answer?: EndpointAnswer) {
  const { url, requests, connections, trustedCaPems } = await startTrustedEndpoint(answer);
  const given = { ...credentials, ...fast, endpoint: url.href, trustedCaPems };
  const sandbox = await startSandbox({ ...given, ...options });
  onTestFinished(sandbox.close);
  return { sandbox, requests, connections };
}

const productIdOf = (sent: { body: Buffer }) => jsonOf(sent).ProductId;

describe('the sandbox', () => {
  it('delivers 200 products quickly, each exactly once', async () => {
    const startedMs = performance.now();
    const { sandbox, requests } = await startPublishing({ count: 200 });
    expect(await sandbox.finished).toMatchObject({ published: 200, delivered: 200, attempts: 200 });
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    expect(requests).toHaveLength(200);
    expect(new Set(requests.map(productIdOf)).size).toBe(200);
  });

  it('finishes when all records of its file are delivered', async () => {
    const recordsFile = recordsFileOf(['a', 'b'].map((Id) => ({ Id, Name: `${Id}.SAFE` })));
    const { sandbox, requests } = await startPublishing({ recordsFile });
    expect(await sandbox.finished).toMatchObject({ published: 2, delivered: 2, pending: 0 });
    expect(requests.map(productIdOf).sort()).toEqual(['a', 'b']);
  });

  it('records every request and every loss of a run with faults and a failing endpoint', async () => {
    const settled: string[] = [];
    const isAccepted = (nth: number) => nth % 3 !== 0;
    const { sandbox, requests } = await startPublishing(
      {
        count: 200,
        modifiedShare: 0.2,
        deletedShare: 0.1,
        faults: demoFaults,
        onSettled: ({ outcome }) => settled.push(outcome),
      },
      (nth) => (isAccepted(nth) ? 200 : 503),
    );
    const totals = await sandbox.finished;
    const accepted = new Set<string>();
    let duplicatesSent = 0;
    for (const [index, { body }] of requests.entries()) {
      if (accepted.has(body.toString())) duplicatesSent += 1;
      if (isAccepted(index + 1)) accepted.add(body.toString());
    }
    const receivedOk = requests.length - Math.floor(requests.length / 3);
    expect(totals).toMatchObject({
      pending: 0,
      duplicatesSent,
      receivedOk,
      accepted: accepted.size,
    });
    expect(totals.published).toBeGreaterThan(200);
    expect(totals.attempts).toBeGreaterThan(requests.length);
    expect([duplicatesSent > 0, totals.lost > 0]).toEqual([true, true]);
    expect(settled.filter((outcome) => outcome === 'lost')).toHaveLength(totals.lost);
    expect(settled).toHaveLength(totals.published);
    const entries = sandbox.entries();
    const answered = entries.flatMap(({ attempts }) => attempts).filter(({ status }) => status);
    expect(answered).toHaveLength(requests.length);
    const lost = entries.filter(({ outcome }) => outcome === 'lost');
    expect(lost.every(({ reason }) => reason?.startsWith('4 attempts failed'))).toBe(true);
    expect(entries.filter(({ timesReceivedOk }) => timesReceivedOk > 0)).toHaveLength(
      accepted.size,
    );
  });

  it('reports why each attempt failed', async () => {
    const failures: unknown[] = [];
    const { sandbox } = await startPublishing({
      count: 1,
      faults: { connectionFails: 1 },
      onAttempt: (failure) => failures.push(failure),
    });
    await sandbox.finished;
    const text = 'connection failed (injected by the sandbox)';
    expect(failures).toEqual(Array(4).fill({ text, status: null, code: null, isInjected: true }));
  });

  it('passes on an error of the listener for settled notifications', async () => {
    const onSettled = () => {
      throw new Error('the listener broke');
    };
    const { sandbox } = await startPublishing({ count: 1, onSettled });
    await expect(sandbox.finished).rejects.toThrow('the listener broke');
  });
});

describe('closing the sandbox', () => {
  it('closes its kept-alive connections to the endpoint', async () => {
    const { sandbox, connections } = await startPublishing({ count: 20 });
    await sandbox.finished;
    expect(await connections()).toBeGreaterThan(0);
    await sandbox.close();
    await expect.poll(() => connections()).toBe(0);
  });

  it('closes the control port and keeps undelivered notifications as pending', async () => {
    const { sandbox, requests } = await startPublishing({ count: 10 }, () => 'hang');
    await expect.poll(() => requests).toHaveLength(8);
    await sandbox.close();
    await expect(fetch(`${sandbox.controlUrl}/totals`)).rejects.toThrow();
    expect(await sandbox.finished).toMatchObject({ delivered: 0, lost: 0 });
    expect(sandbox.totals().pending).toBe(sandbox.totals().published);
  });

  it('can be repeated', async () => {
    const { sandbox } = await startPublishing({ count: 1 });
    await sandbox.close();
    await expect(sandbox.close()).resolves.toBeUndefined();
  });
});

describe('starting the sandbox', () => {
  const complete: SandboxOptions = { ...credentials, endpoint: 'https://localhost:1/', count: 0 };

  it.each<[string, Partial<SandboxOptions> | Record<string, unknown>, RegExp]>([
    ['an unknown option', { sead: 1 }, /sead/],
    ['an endpoint that is not a URL', { endpoint: 'localhost' }, /endpoint/],
    [
      'an endpoint on another machine',
      { endpoint: 'https://endpoint.example/' },
      /not on this machine/,
    ],
    ['plain HTTP', { endpoint: 'http://localhost:1/' }, /https/],
    ['a rate of 0', { ratePerSecond: 0 }, /ratePerSecond/],
    ['a share beyond 1', { modifiedShare: 2 }, /modifiedShare/],
    ['an unknown fault', { faults: { duplicat: 1 } }, /faults.*duplicat/],
    ['too few retry delays', { retryDelaysMs: [1, 2] }, /retryDelaysMs/],
    ['a control address without a port', { controlListen: '127.0.0.1' }, /host:port/],
    [
      'a control port that is open to other machines',
      { controlListen: '0.0.0.0:0' },
      /must not listen/,
    ],
    ['no clock', { now: 'now' }, /now: expected a function/],
  ])('refuses %s', async (_, changes, message) => {
    // The cast permits invalid values that the types forbid.
    const options = { ...complete, ...changes } as SandboxOptions;
    const starting = startSandbox(options);
    await expect(starting).rejects.toThrow(SandboxConfigurationError);
    await expect(starting).rejects.toThrow(message);
  });

  it('reports all problems at once, without passwords', async () => {
    const wrong = { ...complete, seed: 0.5, count: -1, password: 'hunter2' };
    await expect(startSandbox(wrong)).rejects.toThrow(/^(?!.*hunter2).*seed: .*count: /);
  });
});

describe('the services', () => {
  it('listen on loopback and report their addresses', async () => {
    const { sandbox } = await startTestSandbox();
    expect(sandbox.catalogueUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const path = '/auth/realms/CDSE/protocol/openid-connect/token';
    expect(sandbox.tokenUrl).toBe(`${sandbox.catalogueUrl}${path}`);
    const { json } = await send(`${sandbox.controlUrl}/`);
    expect(json).toMatchObject({ catalogueUrl: sandbox.catalogueUrl, tokenUrl: sandbox.tokenUrl });
    expect(json).toMatchObject({ endpoint: null, subscriptionId: null });
  });

  it('refuse to listen for other machines unless that is allowed', async () => {
    const starting = startSandbox({ serviceListen: '0.0.0.0:0', now: Date.now });
    await expect(starting).rejects.toThrow(SandboxConfigurationError);
    await expect(starting).rejects.toThrow(/service must not listen on 0\.0\.0\.0/);
    const options = { serviceListen: '0.0.0.0:0', allowRemoteControl: true, now: Date.now };
    const sandbox = await startSandbox(options);
    onTestFinished(sandbox.close);
    expect(sandbox.catalogueUrl).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
  });

  it('are closed when the control port cannot be opened', async () => {
    const { sandbox } = await startTestSandbox();
    const taken = new URL(sandbox.controlUrl).host;
    const free = await startSandbox({ now: Date.now });
    const serviceListen = new URL(free.catalogueUrl).host;
    await free.close();
    const starting = startSandbox({ controlListen: taken, serviceListen, now: Date.now });
    await expect(starting).rejects.toThrow(
      /control port cannot listen on .*EADDRINUSE.*Choose another port with --control/,
    );
    const again = await startSandbox({ serviceListen, now: Date.now });
    onTestFinished(again.close);
    expect(again.catalogueUrl).toBe(free.catalogueUrl);
  });

  it('are closed with the sandbox, including delayed answers', async () => {
    const { sandbox, login } = await startTestSandbox({ service: { answerDelayMs: 3_600_000 } });
    const answer = login();
    while (sandbox.requests().length === 0) await turn();
    await Promise.all([sandbox.close(), answer.catch(() => undefined)]);
    await expect(fetch(sandbox.tokenUrl)).rejects.toThrow();
  });
});
