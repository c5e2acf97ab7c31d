/** `earshot register` against the sandbox's catalogue, over real sockets. */
import { describe, expect, test } from 'vitest';
import { creations, openAccountWorld, rows, stranger } from './account-world.ts';
import { expectEnd } from './fake-io.ts';
import { writeSubscriptions } from './filled-store.ts';

const it = test.extend('world', () => openAccountWorld());

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";
/** A filter that only the catalogue is to judge. */
const unchecked = ['register', '--filter', "foo eq 'bar'", '--skip-filter-check'];
const registered = ['register', '--event', 'created,modified', '--filter', filter, '--yes'];

describe('earshot register', () => {
  it('registers from nothing, and has nothing to do the second time', async ({ world }) => {
    await expectEnd(world.run(registered), 0, 'Done.');
    expect(rows(world)).toEqual([{ name: 'default', status: 'running', filter }]);
    const second = await expectEnd(world.run('register --yes'), 0);
    expect(second.out).toContain('as wanted: default');
    expect(creations(world)).toBe(1);
  });

  it('replaces when the filter changes, the new one running before the old one goes', async () => {
    const world = await openAccountWorld();
    await world.run(registered);
    const changed = await expectEnd(world.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(changed.out).toContain(`- filter  ${filter}`);
    expect(changed.out).toContain(`+ filter  ${otherFilter}`);
    expect(rows(world)).toEqual([{ name: 'default', status: 'running', filter: otherFilter }]);
    const methods = world.sandbox.requests().map(({ method }) => method);
    expect(methods.lastIndexOf('POST')).toBeLessThan(methods.lastIndexOf('DELETE'));
    expect(world.sandbox.subscriptions()).toMatchObject([{ events: ['created', 'modified'] }]);
    expect(await world.receiver.store.administration.gaps()).toEqual([]);
  });

  it('changes places and records the gap where only two may run', async ({ world }) => {
    world.sandbox.addSubscription(stranger('a'));
    await world.run(registered);
    const changed = await expectEnd(world.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(changed.out).toContain('the gap is recorded');
    expect(rows(world)).toMatchObject([
      { name: 'a', status: 'running' },
      { name: 'default', status: 'running', filter: otherFilter },
    ]);
    const [gap, ...more] = await world.receiver.store.administration.gaps();
    expect(more).toEqual([]);
    expect(gap).toMatchObject({ subscription: 'default', filter: otherFilter });
    expect(gap?.toUs).toBeGreaterThanOrEqual(gap?.fromUs ?? Number.POSITIVE_INFINITY);
  });

  it('deletes first, and records the gap, where ten exist', async ({ world }) => {
    await world.run(registered);
    for (let i = 0; i < 9; i += 1) world.sandbox.addSubscription(stranger(`s${i}`, 'paused'));
    await expectEnd(world.run(['register', '--filter', otherFilter, '--yes']), 0);
    expect(rows(world)).toContainEqual({
      name: 'default',
      status: 'running',
      filter: otherFilter,
    });
    expect(rows(world)).toHaveLength(10);
    const gaps = await world.receiver.store.administration.gaps();
    expect(gaps.map((gap) => gap.filter)).toEqual([filter, otherFilter]);
  });

  it('puts the old one back when the new one is refused where ten exist', async ({ world }) => {
    await world.run(registered);
    for (let i = 0; i < 9; i += 1) world.sandbox.addSubscription(stranger(`s${i}`, 'paused'));
    await expectEnd(world.run([...unchecked, '--yes']), 1, 'It was made anew');
    expect(rows(world)).toContainEqual({ name: 'default', status: 'running', filter });
    expect(await world.run('register --check')).toMatchObject({ code: 0 });
    const gaps = await world.receiver.store.administration.gaps();
    expect(gaps.map((gap) => [gap.filter, gap.toUs === null])).toEqual([[filter, false]]);
  });

  it('leaves two strangers alone, and counts them: a third one cannot run', async ({ world }) => {
    const strangers = [
      world.sandbox.addSubscription(stranger('a')),
      world.sandbox.addSubscription({ type: 'pull', events: ['created'] }),
    ];
    const refused = await expectEnd(world.run(registered), 1, /no room.*nothing was changed/);
    expect(refused.err).toContain('the catalogue lets 2 run');
    expect(world.sandbox.subscriptions()).toEqual(strangers);
    expect(creations(world)).toBe(0);
    await expectEnd(world.run([...registered, '--status', 'paused']), 0);
    expect(world.sandbox.subscriptions().slice(0, 2)).toEqual(strangers);
    expect(rows(world)[2]).toMatchObject({ name: 'default', status: 'paused' });
  });

  it('refuses a file that wants three running before anybody is asked', async ({ world }) => {
    writeSubscriptions(world, { a: {}, b: {}, c: {} });
    await expectEnd(world.run('register --yes'), 2, 'wants 3 running');
    expect(world.sandbox.requests()).toEqual([]);
  });

  it('takes earshot.config.ts for what is wanted, and refuses flags beside it', async () => {
    const world = await openAccountWorld();
    writeSubscriptions(world, {
      'alps-s2': { filter },
      off: { status: 'paused', events: ['deleted'] },
    });
    await expectEnd(world.run(registered), 2);
    expect(world.sandbox.requests()).toEqual([]);
    expect((await world.run('register --yes')).code).toBe(0);
    expect(rows(world)).toEqual([
      { name: 'off', status: 'paused', filter: '' },
      { name: 'alps-s2', status: 'running', filter },
    ]);
  });

  it('reports what is no longer wanted, and deletes it only with --prune', async ({ world }) => {
    writeSubscriptions(world, { a: { filter }, b: { filter } });
    await world.run('register --yes');
    const other = world.sandbox.addSubscription(stranger('x', 'paused'));
    writeSubscriptions(world, { a: { filter } });
    const kept = await world.run('register --yes');
    expect(kept.out).toContain('no longer wanted, and kept: b');
    expect(rows(world)).toHaveLength(3);
    await expectEnd(world.run('register --prune --yes'), 0);
    expect(rows(world).map(({ name }) => name)).toEqual(['a', 'x']);
    expect(world.sandbox.subscriptions()).toContainEqual(other);
  });

  it('adopts those of an earlier public URL', async ({ world }) => {
    const earlier = 'https://localhost:4433';
    const moved = { ...stranger('a'), endpoint: `${earlier}/notifications/default`, filter };
    const { id } = world.sandbox.addSubscription(moved);
    const command = ['register', '--filter', filter, '--moved-from', earlier, '--yes'];
    const adopted = await expectEnd(world.run(command), 0);
    expect(adopted.out).toMatch(/adopt, change endpoint, change credentials/);
    expect(world.sandbox.subscriptions()).toMatchObject([
      { id, endpoint: `${world.publicUrl}/notifications/default` },
    ]);
  });
});

describe('before it writes, earshot register', () => {
  it('shows the plan with --dry-run, and exits 3 with --check', async ({ world }) => {
    const stated = registered.slice(0, -1);
    const shown = await expectEnd(world.run([...stated, '--dry-run']), 0);
    expect(shown.out).toContain('+ create');
    expect(await world.run([...stated, '--check'])).toMatchObject({ code: 3 });
    expect(rows(world)).toEqual([]);
    await world.run(registered);
    expect(await world.run('register --check')).toMatchObject({ code: 0 });
  });

  it('tells the plan as JSON', async ({ world }) => {
    const shown = await world.run([...registered.slice(0, -1), '--dry-run', '--json']);
    expect(JSON.parse(shown.out)).toEqual({
      changes: [
        {
          name: 'default',
          actions: ['create'],
          id: null,
          wanted: {
            events: ['created', 'modified'],
            filter,
            status: 'running',
            endpoint: `${world.publicUrl}/notifications/default`,
          },
        },
      ],
      unchanged: [],
      unwanted: [],
      others: 0,
      applied: false,
    });
  });

  it('stops when the endpoint does not answer as it must, unless it is told not to look', async () => {
    const world = await openAccountWorld();
    const { EARSHOT_PROBE_CA: _, ...env } = world.env;
    const refused = await expectEnd(world.run(registered, { env }), 1);
    expect(refused.err).toMatch(/does not answer as the catalogue needs it.*certificate/s);
    expect(creations(world)).toBe(0);
    const skipped = await world.run([...registered, '--skip-probe'], { env });
    expect(skipped.err).toContain('was NOT looked at');
    expect(rows(world)).toHaveLength(1);
  });

  it('says what it needs when nothing was ever wanted', async ({ world }) => {
    await expectEnd(world.run('register --yes'), 2, '--event created,modified');
  });

  it('lists everything that is missing at once', async ({ world: { run } }) => {
    const refused = await expectEnd(run(registered, { env: {} }), 2);
    expect(refused.err).toMatch(/EARSHOT_ACCOUNT_USERNAME(.|\n)*EARSHOT_PUBLIC_URL/);
  });
});

describe('after an answer that was lost, earshot register', () => {
  it('finds what was created instead of creating it again', async ({ world }) => {
    world.sandbox.service.change({ createAnswersLost: 1 });
    expect(await world.run(registered)).toMatchObject({ code: 0 });
    expect(rows(world)).toHaveLength(1);
    expect(creations(world)).toBe(1);
  });

  it('tries again what was not created', async ({ world }) => {
    world.sandbox.service.change({ createsRefused503: 1 });
    expect(await world.run(registered)).toMatchObject({ code: 0 });
    expect(rows(world)).toHaveLength(1);
  });

  it('shows the catalogue’s own words about a filter, and leaves nothing behind', async () => {
    const world = await openAccountWorld();
    await expectEnd(world.run([...unchecked, '--yes']), 1, 'Invalid field: foo');
    expect(rows(world)).toEqual([]);
    expect(await world.receiver.store.administration.registrations()).toEqual([]);
    expect(await world.run(registered)).toMatchObject({ code: 0 });
    await expectEnd(world.run([...unchecked, '--yes']), 1);
    expect(rows(world)).toEqual([{ name: 'default', status: 'running', filter }]);
    expect(await world.run('register --check')).toMatchObject({ code: 0 });
  });
});
