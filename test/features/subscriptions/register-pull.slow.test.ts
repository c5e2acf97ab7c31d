/** `earshot register` with pull subscriptions, against the sandbox's catalogue, over real sockets. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, startCommand } from '../../helpers/fake-io.ts';
import { type AccountContext, asPerson, openAccountContext, unmanaged } from './account-context.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";
const pulled = ['register', '--pull', '--filter', filter, '--yes'];

/** Opens an account without a public URL. */
async function openPull(...options: Parameters<typeof openAccountContext>) {
  const context = await openAccountContext(...options);
  const { publicUrl, env } = context;
  delete env.EARSHOT_PUBLIC_URL;
  const usePublicUrl = () => {
    env.EARSHOT_PUBLIC_URL = publicUrl;
  };
  return { ...context, usePublicUrl };
}

/** Writes a file with one pull subscription. */
function writeConfig({ folder }: Pick<AccountContext, 'folder'>, ...names: string[]): void {
  const entries = names.map((name) => [name, { type: 'pull', filter }]);
  const config = { subscriptions: Object.fromEntries(entries) };
  const text = `export default ${JSON.stringify(config)};`;
  writeFileSync(join(folder, 'earshot.config.ts'), text);
}

function subscriptions({ sandbox }: Pick<AccountContext, 'sandbox'>) {
  return sandbox.subscriptions().map(({ type, status, filter: own }) => `${type} ${status} ${own}`);
}

/** Returns the ids of the products of the events of a kind of subscription, published and stored. */
async function compared({ sandbox, receiver }: AccountContext) {
  const ids = sandbox.entries().map(({ productId }) => productId);
  const stored = await collect(receiver.store.find({ order: 'oldest' }));
  return { published: new Set(ids), stored: new Set(stored.map(({ productId }) => productId)) };
}

describe('earshot register --pull', () => {
  it('needs an account only, and creates a subscription with a queue', async () => {
    const context = await openPull();
    const { out } = await expectEnd(context.run(pulled), 0, 'Done.');
    expect(out).toContain('type      pull');
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
    const [known] = await context.receiver.store.administration.registrations();
    expect(known).toMatchObject({ name: 'default', type: 'pull', credentialsDigest: null });
    await expectEnd(context.run('register --yes'), 0);
    expect(subscriptions(context)).toHaveLength(1);
  });

  it('keeps the type when only the filter changes, and says so in JSON', async () => {
    const context = await openPull();
    await context.run(pulled);
    const plan = await expectEnd(
      context.run(['register', '--filter', otherFilter, '--dry-run', '--json']),
      0,
    );
    expect(JSON.parse(plan.out)).toMatchObject({
      changes: [
        { actions: ['replace'], desired: { type: 'pull', endpoint: null }, differs: ['filter'] },
      ],
    });
  });

  it('registers the pull subscriptions of earshot.config.ts', async () => {
    const context = await openPull();
    writeConfig(context, 'alps');
    await expectEnd(context.run('register --yes'), 0);
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
    await expectEnd(context.run('register --check'), 0);
  });

  it('adopts a queue with the same filter, and warns of other readers', async () => {
    const context = await openPull();
    context.sandbox.addSubscription({ type: 'pull', filter });
    const { out } = await expectEnd(context.run(pulled), 0);
    expect(out).toContain('~ adopt');
    expect(out).toContain('no other program may read this subscription');
    expect(subscriptions(context)).toHaveLength(1);
  });

  it('adopts no queue with another filter, and no queue that it has for another name', async () => {
    const context = await openPull();
    context.sandbox.addSubscription({ type: 'pull', filter: otherFilter, status: 'paused' });
    await expectEnd(context.run(pulled), 0);
    await expectEnd(context.run([...pulled, '--subscription', 'second']), 0);
    expect(subscriptions(context)).toEqual([
      `pull paused ${otherFilter}`,
      `pull running ${filter}`,
      `pull running ${filter}`,
    ]);
  });

  it('creates one subscription although the answer to the creation is lost', async () => {
    const context = await openPull({ sandbox: { service: { createAnswersLost: 1 } } });
    await expectEnd(context.run(pulled), 0);
    expect(subscriptions(context)).toHaveLength(1);
  });
});

describe('a change of a pull subscription', () => {
  it('stores what is left in the old queue before the old one is deleted, without a gap', async () => {
    const context = await openPull();
    await context.run(pulled);
    await context.sandbox.publishNow(120);
    const queued = context.sandbox.queues()[0]?.length ?? 0;
    expect(queued).toBeGreaterThan(20);
    await expectEnd(context.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
    expect(await context.receiver.store.lastPosition()).toBe(queued);
    expect(await context.receiver.store.administration.gaps()).toEqual([]);
    expect(context.sandbox.totals().lost).toBe(0);
  });

  it('from push to pull and back loses nothing', async () => {
    const context = await openPull();
    context.usePublicUrl();
    const { sandbox, run } = context;
    await expectEnd(run(['register', '--event', 'created', '--filter', filter, '--yes']), 0);
    await sandbox.publishNow(40);
    await sandbox.quiet();
    await expectEnd(run(['register', '--pull', '--yes']), 0, 'Done.');
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
    await sandbox.publishNow(40);
    await expectEnd(run(['register', '--push', '--yes']), 0, 'Done.');
    expect(subscriptions(context)).toEqual([`push running ${filter}`]);
    await sandbox.publishNow(40);
    await sandbox.quiet();
    const { published, stored } = await compared(context);
    expect(published.size).toBeGreaterThan(20);
    expect(stored).toEqual(published);
    expect(await context.receiver.store.administration.gaps()).toEqual([]);
  });

  it.each(['allow', 'refuse'] as const)(
    'with one free place, pauses the old one and records the gap (queue of a paused one: %s)',
    async (readOfPaused) => {
      const context = await openPull({ sandbox: { service: { readOfPaused } } });
      context.sandbox.addSubscription(unmanaged('a'));
      await context.run(pulled);
      await context.sandbox.publishNow(60);
      const queued = context.sandbox.queues()[0]?.length ?? 0;
      const { out } = await expectEnd(
        context.run(['register', '--filter', otherFilter, '--yes']),
        0,
      );
      expect(out).toContain('the short gap is recorded');
      expect(await context.receiver.store.lastPosition()).toBe(queued);
      expect(await context.receiver.store.administration.gaps()).toHaveLength(1);
    },
  );

  it('in a full account, reads the old queue before it is deleted', async () => {
    const context = await openPull();
    await context.run(pulled);
    for (let i = 0; i < 9; i += 1) context.sandbox.addSubscription(unmanaged(`s${i}`, 'paused'));
    await context.sandbox.publishNow(60);
    const queued = context.sandbox.queues()[0]?.length ?? 0;
    await expectEnd(context.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(await context.receiver.store.lastPosition()).toBe(queued);
  });

  it('repeats a refused read of the old queue', async () => {
    const context = await openPull({ sandbox: { service: { queueRetryAfterSeconds: null } } });
    await context.run(pulled);
    const change = ['register', '--filter', otherFilter, '--yes'];
    context.sandbox.service.change({ nextQueueCalls: { rateLimited: 1 } });
    await expectEnd(context.run(change), 0, 'Done.');
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
  });

  it('that is interrupted while the old queue is read is completed by the next run', async () => {
    const context = await openPull();
    await context.run(pulled);
    await context.sandbox.publishNow(60);
    const queued = context.sandbox.queues()[0]?.length ?? 0;
    context.sandbox.service.change({
      nextQueueCalls: { brokenJson: 0 },
      readTopBeyondMax: 'refuse',
    });
    context.sandbox.service.change({ queueFaults: { serverError: 1 } });
    const change = ['register', '--filter', otherFilter, '--yes'];
    const cut = await context.run(change);
    expect(cut.code, cut.err).toBe(1);
    expect(cut.err).toContain('The change is not complete. To continue: `earshot register`.');
    expect(subscriptions(context)).toHaveLength(2);
    context.sandbox.service.change({ queueFaults: { serverError: 0 } });
    await expectEnd(context.run(change), 0);
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
    expect(await context.receiver.store.lastPosition()).toBe(queued);
  });

  it('that Ctrl-C ends while the old queue is read says how to continue', async () => {
    const context = await openPull();
    await context.run(pulled);
    await context.sandbox.publishNow(60);
    const { folder } = context;
    const env = { ...context.env, EARSHOT_PULL_REQUESTS_PER_MINUTE: '40' };
    const change = ['register', '--filter', otherFilter, '--yes'];
    const running = startCommand(change, { workingDir: folder, env });
    const reads = () => context.sandbox.requests().filter(({ path }) => path.includes('/Read'));
    const before = reads().length;
    await expect.poll(() => reads().length).toBeGreaterThan(before + 1);
    running.stop();
    const { code, err } = await running.ended;
    expect(code).toBe(1);
    expect(err).toContain('Stopped. Completed work is kept.');
    expect(err).not.toContain('Internal error');
  });

  it('that removes it stores what is left in its queue', async () => {
    const context = await openPull();
    writeConfig(context, 'second', 'default');
    await context.run('register --yes');
    await context.sandbox.publishNow(60);
    const queued = context.sandbox.queues()[0]?.length ?? 0;
    writeConfig(context, 'default');
    await expectEnd(context.run('register --prune --yes'), 0);
    expect(subscriptions(context)).toHaveLength(1);
    expect(await context.receiver.store.lastPosition()).toBe(queued);
  });
});

describe('maintenance of a pull subscription', () => {
  it('resumes what the catalogue paused after 60 days without an acknowledgement', async () => {
    const context = await openPull();
    await context.run(pulled);
    context.passDays(61);
    expect(subscriptions(context)).toEqual([`pull paused ${filter}`]);
    const { out } = await expectEnd(context.run('maintain'), 0);
    expect(out).toContain('resumed');
    expect(subscriptions(context)).toEqual([`pull running ${filter}`]);
  });

  it('counts an acknowledgement as activity', async () => {
    const context = await openPull();
    await context.run(pulled);
    context.passDays(50);
    await context.sandbox.publishNow(60);
    // Reads the queue, and keeps the subscription.
    await context.run(['register', '--filter', otherFilter, '--yes']);
    context.passDays(50);
    expect(subscriptions(context)).toEqual([`pull running ${otherFilter}`]);
    const { out } = await expectEnd(context.run('maintain'), 0);
    expect(out).not.toContain('resumed');
  });

  it('does not complete an interrupted creation, and adopts no queue', async () => {
    const context = await openPull({ sandbox: { service: { createsRefused503: 100 } } });
    expect((await context.run(pulled)).code).toBe(1);
    context.sandbox.service.change({ createsRefused503: 0 });
    context.sandbox.addSubscription({ type: 'pull', filter });
    expect((await context.run('maintain')).out).toContain('earshot register');
    const registrations = await context.receiver.store.administration.registrations();
    expect(registrations).toMatchObject([{ subscriptionId: null, unfinished: true }]);
    expect(context.sandbox.subscriptions()).toHaveLength(1);
  });

  it('creates what is gone again, and adopts no foreign queue', async () => {
    const context = await openPull();
    await context.run(pulled);
    const [own] = context.sandbox.subscriptions();
    await asPerson(context, own?.id ?? '');
    const foreign = context.sandbox.addSubscription({ type: 'pull', filter });
    const { out } = await expectEnd(context.run('maintain'), 0);
    expect(out).toContain('recreated');
    const [known] = await context.receiver.store.administration.registrations();
    expect(known?.subscriptionId).not.toBe(foreign.id);
  });

  it('is paused after its queue is stored, and resumed by commands', async () => {
    const context = await openPull();
    await context.run(pulled);
    await context.sandbox.publishNow(60);
    const queued = context.sandbox.queues()[0]?.length;
    await expectEnd(context.run('subscriptions pause default'), 0);
    expect(subscriptions(context)).toEqual([`pull paused ${filter}`]);
    await expectEnd(context.run('subscriptions resume default'), 0);
    expect(await context.receiver.store.lastPosition()).toBe(queued);
    const { out } = await expectEnd(context.run('subscriptions list'), 0);
    expect(out).toMatch(/default +running .* pull /);
  });
});

describe('mistakes', () => {
  it('a type is stated once', async () => {
    const context = await openPull();
    const both = await context.run(['register', '--pull', '--push', '--yes']);
    expect(both).toMatchObject({ code: 2 });
  });

  it('a push subscription without a public URL is refused, with the way around', async () => {
    const context = await openPull();
    const ended = await context.run(['register', '--filter', filter, '--yes']);
    expect(ended.code).toBe(2);
    expect(ended.err).toContain('register --pull');
  });

  it('more running subscriptions than the catalogue allows', async () => {
    const context = await openPull();
    context.sandbox.addSubscription(unmanaged('a'));
    context.sandbox.addSubscription(unmanaged('b'));
    const ended = await context.run(pulled);
    expect(ended.code).toBe(1);
    expect(ended.err).toContain('permits 2 running subscriptions');
    expect(subscriptions(context)).toHaveLength(2);
  });
});
