/** The two ports of a sandbox: which addresses they take, and that nothing of them is left. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { SandboxConfigurationError } from '../../src/sandbox/configuration-error.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { send, startAccountWorld } from './account-world.ts';

describe('the services', () => {
  it('listen on loopback, and tell where', async () => {
    const { sandbox } = await startAccountWorld();
    expect(sandbox.catalogueUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const path = '/auth/realms/CDSE/protocol/openid-connect/token';
    expect(sandbox.tokenUrl).toBe(`${sandbox.catalogueUrl}${path}`);
    const { json } = await send(`${sandbox.controlUrl}/`, {});
    expect(json).toMatchObject({ catalogueUrl: sandbox.catalogueUrl, tokenUrl: sandbox.tokenUrl });
    expect(json).toMatchObject({ endpoint: null, subscriptionId: null });
  });

  it('will not listen for other machines unless that is allowed', async () => {
    const starting = startSandbox({ serviceListen: '0.0.0.0:0', now: Date.now });
    await expect(starting).rejects.toThrow(SandboxConfigurationError);
    await expect(starting).rejects.toThrow(/service will not listen on 0\.0\.0\.0/);
    const options = { serviceListen: '0.0.0.0:0', allowRemoteControl: true, now: Date.now };
    const sandbox = await startSandbox(options);
    onTestFinished(sandbox.close);
    expect(sandbox.catalogueUrl).toMatch(/^http:\/\/0\.0\.0\.0:\d+$/);
  });

  it('are closed again when the control port cannot be opened', async () => {
    const { sandbox } = await startAccountWorld();
    const taken = new URL(sandbox.controlUrl).host;
    const free = await startSandbox({ now: Date.now });
    const serviceListen = new URL(free.catalogueUrl).host;
    await free.close();
    const starting = startSandbox({ controlListen: taken, serviceListen, now: Date.now });
    await expect(starting).rejects.toThrow(/control port cannot listen/);
    const again = await startSandbox({ serviceListen, now: Date.now });
    onTestFinished(again.close);
    expect(again.catalogueUrl).toBe(free.catalogueUrl);
  });

  it('are closed with the sandbox, answers that are kept back included', async () => {
    const { sandbox, login } = await startAccountWorld({ service: { answerDelayMs: 3_600_000 } });
    const answer = login();
    while (sandbox.requests().length === 0) await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([sandbox.close(), answer.catch(() => undefined)]);
    await expect(fetch(sandbox.tokenUrl)).rejects.toThrow();
  });
});

describe('the log of requests', () => {
  it('keeps the last thousand, the one under way included', async () => {
    const { sandbox } = await startAccountWorld();
    for (let number = 0; number < 1_005; number += 1) {
      await send(`${sandbox.catalogueUrl}/${number}`, {});
    }
    const requests = sandbox.requests();
    expect(requests).toHaveLength(1_000);
    expect(requests[0]).toEqual({ method: 'GET', path: '/5', status: 404 });
    expect(requests.at(-1)?.path).toBe('/1004');
  });
});
