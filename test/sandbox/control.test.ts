/** The control port of the sandbox, its ports, and the options that it refuses. */
import { describe, expect, it } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { iso, send, startMs, startTestSandbox } from './set-up.ts';

async function startControlled() {
  const { sandbox } = await startTestSandbox({ service: { totpSecret: 'JBSWY3DPEHPK3PXP' } });
  const control = (method: string, path: string, body?: unknown) =>
    send(`${sandbox.controlUrl}${path}`, method, body);
  return { sandbox, control };
}

describe('the control port', () => {
  it('lists its operations, and every GET answers', async () => {
    const { control, sandbox } = await startControlled();
    sandbox.addSubscription({ type: 'pull' });
    await control('POST', '/publish', { count: 3 });
    const { operations, ...about } = (await control('GET', '/')).json;
    expect(about).toMatchObject({ catalogueUrl: sandbox.catalogueUrl });
    const reads = Object.keys(operations).filter((name) => name.startsWith('GET'));
    for (const name of reads) {
      expect(await control('GET', name.split(' ').at(-1) ?? ''), name).toMatchObject({
        status: 200,
      });
    }
    expect(reads.length).toBeGreaterThan(8);
    const lines = (await control('GET', '/events')).text.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(sandbox.events());
    expect((await control('GET', '/queues')).json).toEqual(sandbox.queues());
  });

  it('moves the clock, publishes, and changes settings', async () => {
    const { control, sandbox } = await startControlled();
    const { json } = await control('POST', '/clock', { advanceMs: 60_000 });
    expect(json).toEqual({ now: iso(startMs + 60_000) });
    expect((await control('POST', '/publish', { count: 4 })).json).toEqual({ published: 4 });
    const deleted = await control('POST', '/publish', { count: 1, event: 'deleted' });
    expect([deleted.json, sandbox.events().at(-1)?.event]).toEqual([{ published: 1 }, 'deleted']);
    await control('PATCH', '/faults', { lost: 0.5 });
    await control('PATCH', '/service', { runningMax: 1, nextQueueCalls: { doubleRead: 2 } });
    await control('PATCH', '/inference', { next: { cut: 1 } });
    expect(sandbox.faults.current()).toMatchObject({ lost: 0.5, duplicate: 0 });
    expect(sandbox.service.current()).toMatchObject({ runningMax: 1, totalMax: 10 });
    expect(sandbox.service.current().nextQueueCalls).toMatchObject({
      doubleRead: 2,
      rateLimited: 0,
    });
    expect(sandbox.inference.current().next.cut).toBe(1);
    expect((await control('GET', '/service')).text).not.toContain('JBSWY');
  });

  it('refuses what it does not know, and changes nothing', async () => {
    const { control, sandbox } = await startControlled();
    const before = [sandbox.faults.current(), sandbox.service.current()];
    for (const [method, path, body, status, detail] of [
      ['GET', '/nothing', undefined, 404, /GET \/ lists/],
      ['POST', '/clock', { advanceMs: -1 }, 400, /advanceMs/],
      ['POST', '/publish', { count: 1, event: 'moved' }, 400, /event/],
      ['PATCH', '/faults', { typo: 1 }, 400, /typo/],
      ['PATCH', '/service', { nextQueries: { doubleRead: 1 } }, 400, /nothing was changed/],
    ] as const) {
      const answer = await control(method, path, body);
      expect([answer.status, answer.json.detail]).toEqual([status, expect.stringMatching(detail)]);
    }
    expect([sandbox.faults.current(), sandbox.service.current()]).toEqual(before);
  });
});

it('the sandbox refuses a port in use, and closes the ports that it opened', async () => {
  const { sandbox } = await startTestSandbox();
  const controlListen = new URL(sandbox.controlUrl).host;
  const [first, second] = [await startSandbox({ now: Date.now }), new URL(sandbox.catalogueUrl)];
  await first.close();
  const serviceListen = new URL(first.catalogueUrl).host;
  const options = { now: Date.now, serviceListen, controlListen };
  await expect(startSandbox(options)).rejects.toThrow(/cannot listen on .*EADDRINUSE/);
  await expect(fetch(first.catalogueUrl)).rejects.toThrow('fetch failed');
  expect((await fetch(second)).status).toBe(404);
});
