/** `earshot register` against the sandbox's catalogue, over real sockets. */
import { describe, expect, test } from 'vitest';
import { expectEnd } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { creations, openAccountContext, rows, unmanaged } from './account-context.ts';

const it = test.extend('context', () => openAccountContext());

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";
/** A filter that only the catalogue checks. */
const unchecked = ['register', '--filter', "foo eq 'bar'", '--skip-filter-check'];
const registered = ['register', '--event', 'created,modified', '--filter', filter, '--yes'];

describe('earshot register', () => {
  it('registers a first subscription, and has nothing to do the second time', async ({
    context,
  }) => {
    await expectEnd(context.run(registered), 0, 'Done.');
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
    const second = await expectEnd(context.run('register --yes'), 0);
    expect(second.out).toContain('unchanged: default');
    expect(creations(context)).toBe(1);
  });

  it('replaces when the filter changes: the new one runs before the old one is deleted', async () => {
    const context = await openAccountContext();
    await context.run(registered);
    const changed = await expectEnd(context.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(changed.out).toContain(`- filter    ${filter}`);
    expect(changed.out).toContain(`+ filter    ${otherFilter}`);
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter: otherFilter }]);
    const methods = context.sandbox.requests().map(({ method }) => method);
    expect(methods.lastIndexOf('POST')).toBeLessThan(methods.lastIndexOf('DELETE'));
    expect(context.sandbox.subscriptions()).toMatchObject([{ events: ['created', 'modified'] }]);
    expect(await context.receiver.store.administration.gaps()).toEqual([]);
  });

  it('pauses the old one first and records the gap when only two may run', async ({ context }) => {
    context.sandbox.addSubscription(unmanaged('a'));
    await context.run(registered);
    const changed = await expectEnd(context.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(changed.out).toContain('the short gap is recorded');
    expect(rows(context)).toMatchObject([
      { name: 'a', status: 'running' },
      { name: 'default', status: 'running', filter: otherFilter },
    ]);
    const [gap, ...more] = await context.receiver.store.administration.gaps();
    expect(more).toEqual([]);
    expect(gap).toMatchObject({ subscription: 'default', filter: otherFilter });
    expect(gap?.toUs).toBeGreaterThanOrEqual(gap?.fromUs ?? Number.POSITIVE_INFINITY);
  });

  it('deletes first, and records the gap, when ten exist', async ({ context }) => {
    await context.run(registered);
    for (let i = 0; i < 9; i += 1) context.sandbox.addSubscription(unmanaged(`s${i}`, 'paused'));
    await expectEnd(context.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(rows(context)).toContainEqual({
      name: 'default',
      status: 'running',
      filter: otherFilter,
    });
    expect(rows(context)).toHaveLength(10);
    const gaps = await context.receiver.store.administration.gaps();
    expect(gaps).toMatchObject([{ subscription: 'default', toUs: expect.any(Number) }]);
  });

  it('keeps two unmanaged subscriptions and counts them: a third one cannot run', async ({
    context,
  }) => {
    const others = [
      context.sandbox.addSubscription(unmanaged('a')),
      context.sandbox.addSubscription({ type: 'pull', events: ['created'] }),
    ];
    const refused = await expectEnd(
      context.run(registered),
      1,
      /limits of the account.*Nothing was changed/,
    );
    expect(refused.err).toContain('permits 2 running subscriptions');
    expect(context.sandbox.subscriptions()).toEqual(others);
    expect(creations(context)).toBe(0);
    await expectEnd(context.run([...registered, '--status', 'paused']), 0);
    expect(context.sandbox.subscriptions().slice(0, 2)).toEqual(others);
    expect(rows(context)[2]).toMatchObject({ name: 'default', status: 'paused' });
  });

  it('refuses a file with three running ones before any change', async ({ context }) => {
    writeSubscriptions(context, { a: {}, b: {}, c: {} });
    await expectEnd(context.run('register --yes'), 1, 'permits 2 running subscriptions');
    expect(creations(context)).toBe(0);
  });

  it('keeps what flags registered next to others, without a suggestion to delete it', async ({
    context,
  }) => {
    await context.run(registered);
    await context.run('subscriptions pause default');
    const second = ['register', '--subscription', 'ice', '--filter', otherFilter, '--yes'];
    const { out } = await expectEnd(context.run(second), 0);
    expect(rows(context).map(({ status }) => status)).toEqual(['paused', 'running']);
    writeSubscriptions(context, { a: { filter, status: 'paused' } });
    const third = await expectEnd(context.run('register --prune --yes'), 0);
    expect(out + third.out).not.toMatch(/not configured|delete/);
    expect(rows(context).map(({ name }) => name)).toEqual(['default', 'ice', 'a']);
    const { out: maintained } = await expectEnd(context.run('maintain'), 0);
    expect(maintained).not.toContain('prune');
    const explained = await expectEnd(context.run('filter explain --subscription ice'), 0);
    expect(explained.out).toContain('SENTINEL-1');
  });

  it('uses earshot.config.ts as the desired state, and refuses flags for a subscription of it', async () => {
    const context = await openAccountContext();
    writeSubscriptions(context, {
      'alps-s2': { filter },
      off: { status: 'paused', events: ['deleted'] },
    });
    await expectEnd(context.run([...registered, '--subscription', 'alps-s2']), 2);
    expect(context.sandbox.requests()).toEqual([]);
    expect((await context.run('register --yes')).code).toBe(0);
    expect(rows(context)).toEqual([
      { name: 'off', status: 'paused', filter: '' },
      { name: 'alps-s2', status: 'running', filter },
    ]);
  });

  it('reports a subscription missing in the file, and deletes it only with --prune', async ({
    context,
  }) => {
    writeSubscriptions(context, { a: { filter }, b: { filter } });
    await context.run('register --yes');
    const other = context.sandbox.addSubscription(unmanaged('x', 'paused'));
    writeSubscriptions(context, { a: { filter } });
    const kept = await context.run('register --yes');
    expect(kept.out).toContain('not configured, kept: b');
    expect(rows(context)).toHaveLength(3);
    await expectEnd(context.run('register --prune --yes'), 0);
    expect(rows(context).map(({ name }) => name)).toEqual(['a', 'x']);
    expect(context.sandbox.subscriptions()).toContainEqual(other);
  });
});

describe('before it writes, earshot register', () => {
  it('shows the plan with --dry-run, and exits 3 with --check', async ({ context }) => {
    const stated = registered.slice(0, -1);
    const shown = await expectEnd(context.run([...stated, '--dry-run']), 0);
    expect(shown.out).toContain('+ create');
    expect(await context.run([...stated, '--check'])).toMatchObject({ code: 3 });
    expect(rows(context)).toEqual([]);
    await context.run(registered);
    expect(await context.run('register --check')).toMatchObject({ code: 0 });
  });

  it('prints the plan as JSON', async ({ context }) => {
    const shown = await context.run([...registered.slice(0, -1), '--dry-run', '--json']);
    expect(JSON.parse(shown.out)).toEqual({
      changes: [
        {
          name: 'default',
          actions: ['create'],
          id: null,
          desired: {
            type: 'push',
            events: ['created', 'modified'],
            filter,
            status: 'running',
            endpoint: `${context.publicUrl}/notifications/default`,
          },
        },
      ],
      unchanged: [],
      obsolete: [],
      others: 0,
      applied: false,
    });
  });

  it('stops when the endpoint check fails, unless the check is skipped', async () => {
    const context = await openAccountContext();
    const { EARSHOT_PROBE_CA: _, ...env } = context.env;
    const refused = await expectEnd(context.run(registered, { env }), 1);
    expect(refused.err).toMatch(
      /Nothing was changed, because the check of .* failed.*certificate/s,
    );
    expect(creations(context)).toBe(0);
    const skipped = await context.run([...registered, '--skip-probe'], { env });
    expect(skipped.err).toContain('was not checked');
    expect(rows(context)).toHaveLength(1);
  });

  it('names the missing flags when no subscription is configured', async ({ context }) => {
    await expectEnd(context.run('register --yes'), 2, '--event created');
  });

  it('lists all missing settings at once', async ({ context: { run } }) => {
    const refused = await expectEnd(run(registered, { env: {} }), 2);
    expect(refused.err).toMatch(/EARSHOT_ACCOUNT_USERNAME(.|\n)*EARSHOT_PUBLIC_URL/);
  });
});

describe('after a lost answer, earshot register', () => {
  it('finds the created subscription instead of creating it again', async ({ context }) => {
    context.sandbox.service.change({ createAnswersLost: 1 });
    expect(await context.run(registered)).toMatchObject({ code: 0 });
    expect(rows(context)).toHaveLength(1);
    expect(creations(context)).toBe(1);
  });

  it('retries a creation that failed', async ({ context }) => {
    context.sandbox.service.change({ createsRefused503: 1 });
    expect(await context.run(registered)).toMatchObject({ code: 0 });
    expect(rows(context)).toHaveLength(1);
  });

  it('shows the catalogue’s own message about a filter, and leaves nothing behind', async () => {
    const context = await openAccountContext();
    await expectEnd(context.run([...unchecked, '--yes']), 1, 'Invalid field: foo');
    expect(rows(context)).toEqual([]);
    expect(await context.receiver.store.administration.registrations()).toEqual([]);
    expect(await context.run(registered)).toMatchObject({ code: 0 });
    await expectEnd(context.run([...unchecked, '--yes']), 1);
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
    expect(await context.run('register --check')).toMatchObject({ code: 0 });
  });
});
