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

const partOf = (status: { parts: { part: string }[] }, name: string) =>
  status.parts.find(({ part }) => part === name);

describe('earshot start with pull subscriptions only', () => {
  it('stores what the queue contains, without settings of an endpoint', async () => {
    const { sandbox, start, reader, dataDir } = await openRegistered();
    await sandbox.publishNow(25);
    const running = await start();
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    const counts = await reader().counts();
    expect(counts).toMatchObject({ notifications: 25, quarantined: 0 });
    expect(existsSync(join(dataDir, 'endpoint-credentials.json'))).toBe(false);
    running.stop();
    const { code, err } = await running.ended;
    expect(code).toBe(0);
    expect(err).toContain('ready to read queues, without a public listener');
    expect(err).not.toMatch(/"level":"(warn|error)"/);
    expect(err).not.toContain('EARSHOT_TLS');
  });

  it('keeps the last state of the queue, for the status after the end', async () => {
    const { sandbox, start, reader } = await openRegistered();
    await sandbox.publishNow(3);
    const running = await start();
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    running.stop();
    await running.ended;
    const [queue, ...others] = await reader().administration.queues();
    expect(others).toEqual([]);
    expect(queue).toMatchObject({ subscription: 'default', length: 0, entries: 3, failure: null });
  });

  it('refuses a second receiver on the same directory, also one with a public listener', async () => {
    const { start, runWith, dataDir } = await openRegistered();
    await start();
    const withListener = {
      ...{ EARSHOT_PUBLIC_URL: 'https://earshot.example.org', EARSHOT_TLS: 'off' },
      ...{ EARSHOT_LISTEN: '127.0.0.1:0', EARSHOT_ENDPOINT_USERNAME: 'catalogue' },
      EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    };
    for (const env of [{}, off, withListener]) {
      const refused = expectRefusal(runWith('start', env), 'Another receiver already uses', 1);
      expect(await refused).toMatch(
        `${dataDir}: process ${process.pid}, reading queues, queries on`,
      );
    }
  });

  it('shows the state of the last process until the queue was read', async () => {
    const { sandbox, start, reader, statusOf } = await openRegistered();
    await sandbox.publishNow(3);
    const first = await start();
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    first.stop();
    await first.ended;
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
    const store = await openStore({ dataDir, nowUs: () => Date.now() * 1_000 });
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

  it('is refused without an account', async () => {
    const { runWith } = await openRegistered();
    const err = expectRefusal(
      runWith('start', { EARSHOT_ACCOUNT_USERNAME: '', EARSHOT_ACCOUNT_PASSWORD: '' }),
      'Pull subscriptions need your catalogue account.',
    );
    expect(await err).toContain('EARSHOT_ACCOUNT_USERNAME');
  });

  it('needs no settings of an endpoint, but reports invalid settings of other parts', async () => {
    const { runWith } = await openRegistered();
    const err = await expectRefusal(
      runWith('start', { EARSHOT_PUBLIC_URL: 'earshot.example.org', EARSHOT_TLS: 'maybe' }),
      'EARSHOT_PUBLIC_URL',
    );
    expect(err).not.toContain('endpoint credentials');
    const other = runWith('start', { EARSHOT_PULL_REQUESTS_PER_MINUTE: 'many' });
    await expectRefusal(other, 'EARSHOT_PULL_REQUESTS_PER_MINUTE');
  });

  it('opens no listener at all with EARSHOT_CONSOLE_LISTEN=off, and still reads the queue', async () => {
    const { sandbox, start, consoleUrl } = await openRegistered();
    await sandbox.publishNow(3);
    await start(off);
    await expect.poll(() => sandbox.queues()[0]?.length).toBe(0);
    await expect(fetch(consoleUrl)).rejects.toThrow();
  });
});

describe('earshot admin health of a receiver that only reads queues', () => {
  it('asks the private listener, without credentials', async () => {
    const { start, run, consoleUrl } = await openRegistered();
    await start();
    const { out } = await expectEnd(run('admin health'), 0);
    expect(out).toBe(`The receiver accepts notifications (${consoleUrl}).\n`);
  });

  it('needs no password of the private listener', async () => {
    const { start, runWith } = await openRegistered();
    const password = { EARSHOT_CONSOLE_PASSWORD: 'a long password for the page' };
    await start(password);
    await expectEnd(runWith('admin health', password), 0);
  });

  it('fails when nothing listens', async () => {
    const { run, consoleUrl } = await openRegistered();
    const err = await expectRefusal(run('admin health'), 'does not accept notifications', 1);
    expect(err).toContain(`(${consoleUrl}): the connection was refused`);
  });

  it('fails without a private listener, with the way around', async () => {
    const { runWith } = await openRegistered();
    const err = await expectRefusal(
      runWith('admin health', off),
      'EARSHOT_CONSOLE_LISTEN with a fixed port',
    );
    expect(err).toContain('`earshot status`');
  });
});

describe('earshot status of a receiver that only reads queues', () => {
  it('shows the receiver, its page and the queue, and needs no certificate', async () => {
    const { start, run, statusOf, consoleUrl } = await openRegistered();
    await start();
    const queue = async () => (await statusOf()).subscriptions[0]?.queue;
    await expect.poll(queue).toMatchObject({ failure: null });
    const { out } = await expectEnd(run('status --check'), 0);
    expect(out).toMatch(/^Everything is ok\./);
    expect(out).toMatch(/subscriptions +default \(running.*queue of default: (not read yet|empty)/);
    expect(out).toMatch(/certificate +not needed: all subscriptions are pull/);
    expect(out).toContain(`Web page: ${consoleUrl}/`);
    const status = await statusOf();
    expect(status).toMatchObject({ ok: true, hasEndpoint: false, behindProxy: false });
    expect(status.receiver).toMatchObject({ pid: process.pid, refusing: null });
  });

  it('finds the receiver by its lock when it has no listener', async () => {
    const { start, runWith, statusOf } = await openRegistered();
    await start(off);
    expect((await statusOf(off)).receiver).toMatchObject({ pid: process.pid, refusing: null });
    const { out } = await expectEnd(runWith('status', off), 0);
    expect(out).toMatch(/^Everything is ok\./);
    expect(out).not.toContain('Web page');
  });

  it.each([{}, off])('reports that no receiver runs (%j)', async (more) => {
    const { runWith, statusOf } = await openRegistered();
    const { out } = await expectEnd(runWith('status --check', more), 3);
    expect(out).toMatch(/^The receiver is not running/);
    expect((await statusOf(more)).receiver).toBeNull();
  });

  it('reports a receiver that runs with other settings', async () => {
    const { start, statusOf } = await openRegistered();
    await start(off);
    const status = await statusOf();
    expect(status.receiver).toBeNull();
    expect(partOf(status, 'receiver')).toMatchObject({
      level: 'unknown',
      text: expect.stringContaining(`process ${process.pid}, reading queues`),
    });
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
