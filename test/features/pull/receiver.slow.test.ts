/** A receiver that only reads queues: `start`, `health` and `status` without a public listener. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectEnd, expectRefusal } from '../../helpers/fake-io.ts';
import { openStore } from '../../helpers/store.ts';
import { openPullAccount } from './pull-account.ts';

const off = { EARSHOT_CONSOLE_LISTEN: 'off' };

/** Opens an account with a registered pull subscription. */
async function openRegistered() {
  const context = await openPullAccount();
  await context.register();
  const { run, env } = context;
  const runWith = (argv: string, more: Record<string, string>) =>
    run(argv, { env: { ...env, ...more } });
  const statusOf = async (more: Record<string, string> = {}) =>
    JSON.parse((await runWith('status --json', more)).out);
  return { ...context, runWith, statusOf };
}

describe('earshot start with pull subscriptions only', () => {
  it('refuses a second receiver on the same directory, also one with a public listener', async () => {
    const { start, runWith, dataDir } = await openRegistered();
    await start();
    const withListener = {
      ...{ EARSHOT_PUBLIC_URL: 'https://earshot.example.org', EARSHOT_TLS: 'off' },
      ...{ EARSHOT_LISTEN: '127.0.0.1:0', EARSHOT_ENDPOINT_USERNAME: 'catalogue' },
      EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    };
    for (const env of [{}, off, withListener]) {
      const running = `${dataDir}: process ${process.pid}, reading queues, queries on`;
      const refused = expectRefusal(runWith('start', env), 'Another receiver already uses', 1);
      expect(await refused).toMatch(running);
    }
  });

  it('needs no settings of an endpoint, and shows the state of the last process until the queue was read', async () => {
    const { sandbox, start, reader, statusOf, dataDir } = await openRegistered();
    await sandbox.publishNow(3);
    const first = await start();
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    first.stop();
    const { code, err } = await first.ended;
    expect(code).toBe(0);
    expect(err).toContain('ready to read queues, without a public listener');
    expect(err).not.toMatch(/"level":"(warn|error)"|EARSHOT_TLS/);
    expect(existsSync(join(dataDir, 'endpoint-credentials.json'))).toBe(false);
    const [before] = await reader().administration.queues();
    sandbox.service.change({ nextQueueCalls: { serverError: 1_000 } });
    await start();
    const queue = async () => (await statusOf()).subscriptions[0]?.queue;
    await expect.poll(queue).toMatchObject({ emptiedAt: expect.any(String) });
    const { emptiedAt } = await queue();
    expect(Date.parse(emptiedAt)).toBe(Math.trunc((before?.emptiedAtUs ?? 0) / 1_000));
  });

  it('does not read a subscription whose change is not complete, until it is', async () => {
    const { sandbox, start, reader, statusOf, dataDir } = await openRegistered();
    await sandbox.publishNow(3);
    const store = await openStore({ dataDir });
    onTestFinished(() => store.close());
    const [known] = await reader().administration.registrations();
    if (known === undefined) throw new Error('Nothing is registered.');
    await store.administration.commit({ save: { ...known, unfinished: true } });
    const running = await start();
    expect((await statusOf()).subscriptions).toMatchObject([{ state: 'unfinished' }]);
    expect([sandbox.queues()[0]?.length, running.err()]).toEqual([
      3,
      expect.not.stringContaining('reading the queue'),
    ]);
    await store.administration.commit({ save: known });
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
  });
});

describe('earshot status of a receiver that only reads queues', () => {
  it('shows the receiver, its page and the queue, and needs no certificate, as admin health', async () => {
    const { start, run, statusOf, consoleUrl } = await openRegistered();
    await start();
    const { out: health } = await expectEnd(run('admin health'), 0);
    expect(health).toBe(`The receiver accepts notifications (${consoleUrl}).\n`);
    const queue = async () => (await statusOf()).subscriptions[0]?.queue;
    await expect.poll(queue).toMatchObject({ failure: null });
    const { out } = await expectEnd(run('status --check'), 0);
    expect(out).toMatch(/^Everything is ok\./);
    expect(out).toMatch(/subscriptions +default \(running.*queue of default: (not read yet|empty)/);
    expect(out).toMatch(/certificate +not needed: no public listener is configured/);
    expect(out).toContain(`Web page: ${consoleUrl}/`);
    const status = await statusOf();
    expect(status).toMatchObject({ ok: true, hasEndpoint: false, behindProxy: false });
    expect(status.receiver).toMatchObject({ pid: process.pid, refusing: null });
  });

  it('finds a receiver that reads queues without any listener by its lock', async () => {
    const { start, runWith, statusOf, sandbox, consoleUrl } = await openRegistered();
    const { out: before } = await expectEnd(runWith('status --check', off), 3);
    expect(before).toMatch(/^The receiver is not running/);
    await sandbox.publishNow(3);
    await start(off);
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    await expect(fetch(consoleUrl)).rejects.toThrow();
    expect((await statusOf(off)).receiver).toMatchObject({ pid: process.pid, refusing: null });
    const { out } = await expectEnd(runWith('status', off), 0);
    expect(out).toMatch(/^Everything is ok\./);
    expect(out).not.toContain('Web page');
  });
});

describe('a receiver with an account, before the first registration', () => {
  it('is refused before it changes anything if a variable of the listener is set', async () => {
    const { run, dataDir, env } = await openPullAccount();
    const push = { ...env, EARSHOT_TLS: 'off' };
    const err = await expectRefusal(run('start', { env: push }), 'No endpoint credentials are');
    expect(err).toContain('`earshot register --pull`');
    expect(existsSync(join(dataDir, 'receiver.json'))).toBe(false);
  });

  it('starts without a listener, and reads the queue that is registered later', async () => {
    const { start, register, sandbox } = await openPullAccount();
    await start();
    await register();
    await sandbox.publishNow(3);
    await expect.poll(() => sandbox.queues()[0]?.length, { timeout: 90_000 }).toBe(0);
  });
});
