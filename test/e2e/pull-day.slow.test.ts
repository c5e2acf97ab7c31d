/** A day of pull subscriptions with the real program: without an endpoint, and stopped for most of the day. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { sessionFileName } from '../../src/admin/session.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { collect } from '../helpers/deliveries.ts';
import { printedJson } from '../helpers/fake-io.ts';
import { freePort } from '../helpers/free-ports.ts';
import { openReader } from '../store/sqlite-store.ts';
import { listeningPorts, openPullContext, publishedTo } from './pull-context.ts';

const dayMs = 86_400_000;
const filter = "Collection/Name eq 'SENTINEL-1' or Collection/Name eq 'SENTINEL-2'";
const anyName = "contains(Name,'_')";

/** Opens an account with two queues. Its clock is a day behind, so that it is right when the day has passed. */
async function openAccount() {
  const changes = { modifiedShare: 0.3, deletedShare: 0.1 };
  const sandbox = await startSandbox({ now: () => Date.now() - dayMs, count: 0, ...changes });
  onTestFinished(() => sandbox.close());
  const consolePort = await freePort();
  const context = openPullContext(sandbox, { consolePort });
  await context.register('--filter', filter);
  const events = ['--event', 'modified,deleted'];
  await context.register('--subscription', 'changes', ...events, '--filter', anyName);
  const lengths = () => sandbox.queues().map(({ length }) => length);
  const reader = openReader(context.dataDir);
  const rows = () => collect(reader.find({ order: 'oldest' }));
  return { ...context, ...{ sandbox, consolePort, lengths, reader, rows } };
}

type Account = Awaited<ReturnType<typeof openAccount>>;

/** Resolves when the receiver has read both queues to their end, and has stored that. */
async function untilRead({ lengths, reader }: Account): Promise<void> {
  await expect.poll(lengths, { timeout: 60_000 }).toEqual([0, 0]);
  const stored = async () => (await reader.administration.queues()).map(({ length }) => length);
  await expect.poll(stored).toEqual([0, 0]);
}

/** Expects that the log has exactly what was published to each queue, once and in order. */
async function expectWholeLog({ sandbox, rows }: Account): Promise<void> {
  const stored = await rows();
  for (const { id } of sandbox.subscriptions()) {
    const own = stored.filter(({ subscriptionId }) => subscriptionId === id);
    expect(own.map(({ ackId }) => ackId)).toEqual(publishedTo(sandbox, id));
  }
  const facts = new Set(stored.map(({ source, timesSeen }) => `${source} ${timesSeen}`));
  expect(facts).toEqual(new Set(['pull 1']));
  const { length } = stored;
  expect(sandbox.totals()).toMatchObject({ published: length, delivered: length, lost: 0 });
}

type Finding = { check: string; level: string; text: string };

it('stores a day of notifications once and in order, with the settings of the account only', async () => {
  const account = await openAccount();
  const { sandbox, consolePort, lengths, rows } = account;
  const first = account.start();
  await expect.poll(first.log).toContain('ready to read queues, without a public listener');
  await sandbox.publishNow(40);
  await untilRead(account);
  expect((await rows()).length).toBeGreaterThan(10);
  expect(listeningPorts(first.pid)).toEqual([consolePort]);
  await first.stop();

  await sandbox.pass({ products: 400, durationMs: dayMs });
  expect(Math.min(...lengths())).toBeGreaterThan(100);
  // By the clock of this machine, the tokens of the day before would still be valid.
  rmSync(join(account.dataDir, sessionFileName));
  const second = account.start();
  await untilRead(account);
  expect(listeningPorts(second.pid)).toEqual([consolePort]);
  const status = await printedJson(account.succeed('status', '--json'));
  expect(status).toMatchObject({ hasEndpoint: false, receiver: { refusing: null } });
  const queue = { length: 0, failure: null, otherReader: null };
  expect(status.subscriptions).toMatchObject([
    { name: 'changes', queue },
    { name: 'default', queue },
  ]);
  const findings: Finding[] = await printedJson(account.succeed('doctor', '--json'));
  const found = (name: string) => findings.find(({ check }) => check === name);
  expect(found('endpoint')).toMatchObject({
    level: 'unknown',
    text: expect.stringContaining('because all subscriptions are pull'),
  });
  expect([found('queue default'), found('queue changes')]).toMatchObject([
    { level: 'ok', text: expect.stringContaining('can be read') },
    { level: 'ok', text: expect.stringContaining('can be read') },
  ]);
  await second.stop();

  await expectWholeLog(account);
  const events = new Set((await rows()).map(({ event }) => event));
  expect(events).toEqual(new Set(['created', 'modified', 'deleted']));
}, 180_000);
