/** `earshot register` and `maintain` against the sandbox's catalogue, over real sockets. */
import { describe, expect, test } from 'vitest';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import { writeSubscriptions } from '../../helpers/filled-store.ts';
import { asPerson, creations, openAccountContext, rows, unmanaged } from './account-context.ts';

const it = test.extend('context', () => openAccountContext());

const filter = "Collection/Name eq 'SENTINEL-2'";
const otherFilter = "Collection/Name eq 'SENTINEL-1'";
/** A filter that only the catalogue checks. */
const unchecked = ['register', '--filter', "foo eq 'bar'", '--skip-filter-check', '--yes'];
const stated = ['register', '--event', 'created,modified', '--filter', filter];
const registered = [...stated, '--yes'];
const changed = ['register', '--filter', otherFilter, '--yes'];

describe('earshot register', () => {
  it('registers once, and replaces when the filter changes, without a gap', async ({ context }) => {
    await expectEnd(context.run(registered), 0, 'Done.');
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
    const second = await expectEnd(context.run('register --yes'), 0);
    expect(second.out).toContain('unchanged: default');
    expect(creations(context)).toBe(1);
    const { out } = await expectEnd(context.run(changed), 0);
    expect(out).toContain(`- filter    ${filter}`);
    expect(out).toContain(`+ filter    ${otherFilter}`);
    expect(context.sandbox.subscriptions()).toMatchObject([
      { status: 'running', filter: otherFilter, events: ['created', 'modified'] },
    ]);
    const methods = context.sandbox.requests().map(({ method }) => method);
    expect(methods.lastIndexOf('POST')).toBeLessThan(methods.lastIndexOf('DELETE'));
    expect(await context.receiver.store.administration.gaps()).toEqual([]);
  });

  it('keeps what flags registered next to others, without a suggestion to delete it', async ({
    context,
  }) => {
    await expectEnd(context.run([...registered, '--status', 'paused']), 0);
    const second = ['register', '--subscription', 'ice', '--filter', otherFilter, '--yes'];
    const { out } = await expectEnd(context.run(second), 0);
    expect(rows(context).map(({ status }) => status)).toEqual(['paused', 'running']);
    writeSubscriptions(context, { a: { filter, status: 'paused' } });
    const third = await expectEnd(context.run('register --prune --yes'), 0);
    expect(out + third.out).not.toMatch(/not configured|delete/);
    expect(rows(context).map(({ name }) => name)).toEqual(['default', 'ice', 'a']);
    const explained = await expectEnd(context.run('filter explain --subscription ice'), 0);
    expect(explained.out).toContain('SENTINEL-1');
  });

  it('uses earshot.config.ts as the desired state, and deletes others only with --prune', async ({
    context,
  }) => {
    writeSubscriptions(context, { a: { filter }, off: { status: 'paused', events: ['deleted'] } });
    await expectEnd(context.run([...registered, '--subscription', 'a']), 2);
    expect(context.sandbox.requests()).toEqual([]);
    await expectEnd(context.run('register --yes'), 0);
    const off = { name: 'off', status: 'paused', filter: '' };
    expect(rows(context)).toEqual([off, { name: 'a', status: 'running', filter }]);
    const other = context.sandbox.addSubscription(unmanaged('x', 'paused'));
    writeSubscriptions(context, { a: { filter } });
    const kept = await context.run('register --yes');
    expect(kept.out).toContain('not configured, kept: off');
    expect(rows(context)).toHaveLength(3);
    await expectEnd(context.run('register --prune --yes'), 0);
    expect(rows(context).map(({ name }) => name)).toEqual(['a', 'x']);
    expect(context.sandbox.subscriptions()).toContainEqual(other);
  });
});

describe('before it writes, earshot register', () => {
  it('shows the plan with --dry-run, as text and JSON, and exits 3 with --check', async ({
    context,
  }) => {
    const shown = await expectEnd(context.run([...stated, '--dry-run']), 0);
    expect(shown.out).toContain('+ create');
    const { publicUrl } = context;
    const desired = {
      ...{ type: 'push', events: ['created', 'modified'], filter, status: 'running' },
      endpoint: `${publicUrl}/notifications/default`,
    };
    expect(await printedJson(context.run([...stated, '--dry-run', '--json']))).toEqual({
      changes: [{ name: 'default', actions: ['create'], id: null, desired }],
      ...{ unchanged: [], obsolete: [], others: 0, applied: false },
    });
    await expectEnd(context.run([...stated, '--check']), 3);
    expect(rows(context)).toEqual([]);
    await context.run(registered);
    await expectEnd(context.run('register --check'), 0);
  });

  it('stops when the endpoint check fails, unless the check is skipped', async ({ context }) => {
    const { EARSHOT_PROBE_CA: _, ...env } = context.env;
    await expectEnd(context.run(registered, { env }), 1, /Nothing was changed.*certificate/s);
    expect(creations(context)).toBe(0);
    await expectEnd(context.run([...registered, '--skip-probe'], { env }), 0, 'was not checked');
    expect(rows(context)).toHaveLength(1);
  });

  it('names missing flags, and lists all missing settings at once', async ({ context }) => {
    await expectEnd(context.run('register --yes'), 2, '--event created');
    const missing = /EARSHOT_ACCOUNT_USERNAME(.|\n)*EARSHOT_PUBLIC_URL/;
    await expectEnd(context.run(registered, { env: {} }), 2, missing);
  });
});

it('after a failed request, earshot register shows the catalogue’s own message, and leaves nothing behind', async ({
  context,
}) => {
  await expectEnd(context.run(unchecked), 1, 'Invalid field: foo');
  expect(rows(context)).toEqual([]);
  expect(await context.receiver.store.administration.registrations()).toEqual([]);
  await context.run(registered);
  await expectEnd(context.run(unchecked), 1);
  expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
  await expectEnd(context.run('register --check'), 0);
});

it('earshot maintain prints what it did and found, and exits 1 when the catalogue is down', async ({
  context,
}) => {
  await expectEnd(context.run('maintain'), 0);
  expect(context.sandbox.requests()).toEqual([]);
  await context.run(registered);
  expect(await printedJson(context.run('maintain --json'))).toEqual([
    { name: 'default', status: 'running', did: null, notes: [], failure: null },
  ]);
  context.passDays(61);
  expect((await expectEnd(context.run('maintain'), 0)).out).toContain('resumed');
  const id = context.sandbox.subscriptions()[0]?.id ?? '';
  const NotificationEndpoint = 'https://localhost:9/elsewhere';
  await asPerson(context, id, { Status: 'paused', NotificationEndpoint });
  const { out } = await context.run('maintain');
  expect(out).toContain('changed by a person');
  expect(out).toContain('the endpoint of the subscription differs');
  expect(context.sandbox.subscriptions()).toMatchObject([{ endpoint: NotificationEndpoint }]);
  context.sandbox.service.change({ unavailable: true });
  await expectEnd(context.run('maintain'), 1, '503');
});
