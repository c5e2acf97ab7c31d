/** `earshot register` with pull subscriptions, against the sandbox's catalogue, over real sockets. */
import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../../src/sandbox/settings.ts';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, printedJson, startCommand } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { type AccountContext, openAccountContext, unmanaged } from './account-context.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";
const pulled = ['register', '--pull', '--filter', filter, '--yes'];

const change = ['register', '--filter', otherFilter, '--yes'];

/** Opens an account without the variables of a public listener. */
async function openPull(service: Partial<SandboxOptions>['service'] = {}) {
  const context = await openAccountContext({ sandbox: { service } });
  for (const name of ['PUBLIC_URL', 'LISTEN', 'TLS_CERT', 'TLS_KEY'])
    delete context.env[`EARSHOT_${name}`];
  return context;
}

/** Opens an account with a registered pull subscription, and publishes entries of its queue. */
async function openQueue(service: Partial<SandboxOptions>['service'] = {}) {
  const context = await openPull(service);
  await expectEnd(context.run(pulled), 0, 'Done.');
  await context.sandbox.publishNow(60);
  const queued = context.sandbox.queues()[0]?.length ?? 0;
  expect(queued).toBeGreaterThan(10);
  /** Expects every entry in the log, and these subscriptions. */
  const expectStored = async (...expected: string[]) => {
    expect(await context.receiver.store.lastPosition()).toBe(queued);
    expect(subscriptions(context)).toEqual(expected);
  };
  return { ...context, expectStored };
}

function subscriptions({ sandbox }: Pick<AccountContext, 'sandbox'>) {
  return sandbox.subscriptions().map(({ type, status, filter: own }) => `${type} ${status} ${own}`);
}

describe('earshot register --pull', () => {
  it('needs an account only, creates a subscription with a queue, and keeps the type', async () => {
    const context = await openPull();
    const { out } = await expectEnd(context.run(pulled), 0, 'Done.');
    expect(out).toContain('type      pull');
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
    const [known] = await context.receiver.store.administration.registrations();
    expect(known).toMatchObject({ name: 'default', type: 'pull', credentialsDigest: null });
    await expectEnd(context.run('register --check'), 0);
    const argv = ['register', '--filter', otherFilter, '--dry-run', '--json'];
    const desired = { type: 'pull', endpoint: null };
    expect(await printedJson(context.run(argv))).toMatchObject({
      changes: [{ actions: ['replace'], desired, differs: ['filter'] }],
    });
  });

  it('adopts only a queue with the same filter that has no name, and warns of other readers', async () => {
    const context = await openPull();
    context.sandbox.addSubscription({ type: 'pull', filter: otherFilter, status: 'paused' });
    context.sandbox.addSubscription({ type: 'pull', filter });
    const { out } = await expectEnd(context.run(pulled), 0);
    expect(out).toMatch(/~ adopt[\s\S]*no other program may read this subscription/);
    const both = [`pull paused ${otherFilter}`, `pull running ${filter}`];
    expect(subscriptions(context)).toEqual(both);
    await expectEnd(context.run([...pulled, '--subscription', 'second']), 0);
    expect(subscriptions(context)).toEqual([...both, `pull running ${filter}`]);
  });

  it('creates one subscription although the answer to the creation is lost, when it is repeated', async () => {
    const context = await openPull({ createAnswersLost: 1 });
    await expectEnd(context.run(pulled), 1, 'To continue: `earshot register`.');
    await expectEnd(context.run('register --yes'), 0);
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
  });

  it('refuses two types, and push without a public URL, with the way around', async () => {
    const context = await openPull();
    await expectEnd(context.run('register --pull --push --yes'), 2);
    await expectEnd(context.run(['register', '--filter', filter]), 2, 'register --pull');
  });
});

describe('a change of a pull subscription', () => {
  it('stores what is left in the old queue before the old one is deleted, without a gap', async () => {
    const context = await openQueue();
    await expectEnd(context.run(change), 0);
    await context.expectStored(`pull running ${otherFilter}`);
    expect(await context.receiver.store.administration.gaps()).toEqual([]);
    expect(context.sandbox.totals().lost).toBe(0);
  });

  it('from push to pull and back loses nothing', async () => {
    const context = await openAccountContext();
    const { sandbox, run, receiver } = context;
    await expectEnd(run(['register', '--event', 'created', '--filter', filter, '--yes']), 0);
    for (const type of ['pull', 'push']) {
      await sandbox.publishNow(40);
      await sandbox.quiet();
      await expectEnd(run(['register', `--${type}`, '--yes']), 0, 'Done.');
      expect(subscriptions(context)).toEqual([`${type} running ${filter}`]);
    }
    await sandbox.publishNow(40);
    await sandbox.quiet();
    const stored = await collect(receiver.store.find({ order: 'oldest' }));
    const idsOf = (all: readonly { productId: string }[]) =>
      new Set(all.map((one) => one.productId));
    expect(idsOf(sandbox.entries()).size).toBeGreaterThan(20);
    expect(idsOf(stored)).toEqual(idsOf(sandbox.entries()));
    expect(await receiver.store.administration.gaps()).toEqual([]);
  });

  it.each([
    ['with one free place', 'allow', [unmanaged('a')]],
    ['with one free place', 'refuse', [unmanaged('a')]],
    [
      'in a full account',
      'allow',
      Array.from({ length: 9 }, (_, i) => unmanaged(`s${i}`, 'paused')),
    ],
  ] as const)(
    '%s reads the old queue first, and records the gap (%s reading a paused one)',
    async (_, readOfPaused, others) => {
      const context = await openQueue({ readOfPaused });
      for (const one of others) context.sandbox.addSubscription(one);
      const { out } = await expectEnd(context.run(change), 0);
      expect(out).toContain('gap is recorded');
      const kept = others.map(({ status, filter: own }) => `push ${status} ${own}`);
      await context.expectStored(...kept, `pull running ${otherFilter}`);
      expect(await context.receiver.store.administration.gaps()).toHaveLength(1);
    },
  );

  it('that Ctrl-C ends while the old queue is read is completed by the next run', async () => {
    const context = await openQueue();
    const { sandbox, run, folder } = context;
    const env = { ...context.env, EARSHOT_PULL_REQUESTS_PER_MINUTE: '40' };
    const running = startCommand(change, { workingDir: folder, env });
    const reads = () => sandbox.requests().filter(({ path }) => path.includes('/Read')).length;
    const before = reads();
    await expect.poll(reads).toBeGreaterThan(before + 1);
    running.stop();
    const { err } = await expectEnd(running.ended, 1, 'Stopped. Completed work is kept.');
    expect(err).not.toContain('Internal error');
    expect(subscriptions(context)).toHaveLength(2);
    await expectEnd(run(change), 0);
    await context.expectStored(`pull running ${otherFilter}`);
  });
});

it('a pull subscription that is removed from earshot.config.ts is deleted after its queue is stored', async () => {
  const context = await openPull();
  const pull = { type: 'pull', filter };
  writeSubscriptions(context, { second: pull, default: pull });
  await expectEnd(context.run('register --yes'), 0);
  await context.sandbox.publishNow(60);
  const queued = context.sandbox.queues()[0]?.length ?? 0;
  writeSubscriptions(context, { default: pull });
  await expectEnd(context.run('register --prune --yes'), 0);
  expect(subscriptions(context)).toHaveLength(1);
  expect(await context.receiver.store.lastPosition()).toBe(queued);
});

describe('maintenance of a pull subscription', () => {
  it('resumes it after 60 days without an acknowledgement, which counts as activity', async () => {
    const context = await openQueue();
    context.passDays(50);
    // Reads the queue, and keeps the subscription.
    await context.run(change);
    context.passDays(50);
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
    context.passDays(11);
    expect(subscriptions(context)).toEqual([`pull paused ${otherFilter}`]);
    expect((await expectEnd(context.run('maintain'), 0)).out).toContain('resumed');
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
  });

  it('does not complete an interrupted creation, and adopts no queue', async () => {
    const context = await openPull({ createsRefused503: 100 });
    await expectEnd(context.run(pulled), 1);
    context.sandbox.service.change({ createsRefused503: 0 });
    context.sandbox.addSubscription({ type: 'pull', filter });
    expect((await context.run('maintain')).out).toContain('earshot register');
    const registrations = await context.receiver.store.administration.registrations();
    expect(registrations).toMatchObject([{ subscriptionId: null, unfinished: true }]);
    expect(context.sandbox.subscriptions()).toHaveLength(1);
  });
});

it('a pull subscription is paused after its queue is stored, and resumed by commands', async () => {
  const context = await openQueue();
  await expectEnd(context.run('subscriptions pause default'), 0);
  await context.expectStored(`pull paused ${filter}`);
  await expectEnd(context.run('subscriptions resume default'), 0);
  const { out } = await expectEnd(context.run('subscriptions list'), 0);
  expect(out).toMatch(/default +running .* pull /);
});
