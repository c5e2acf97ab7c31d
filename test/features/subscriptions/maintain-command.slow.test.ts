/** `earshot maintain` against the sandbox's catalogue, over months of its clock. */
import { describe, expect, test } from 'vitest';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import { type AccountContext, asPerson, openAccountContext, rows } from './account-context.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const registered = ['register', '--filter', filter, '--yes'];

async function openRegistered(): Promise<AccountContext & { id: string }> {
  const context = await openAccountContext();
  expect(await context.run(registered)).toMatchObject({ code: 0 });
  return { ...context, id: context.sandbox.subscriptions()[0]?.id ?? '' };
}

const it = test.extend('context', () => openRegistered());

async function historyOf({ run }: AccountContext): Promise<{ action: string; actor: string }[]> {
  return await printedJson(run('subscriptions history --json'));
}

describe('earshot maintain', () => {
  it('sends no request when nothing is registered', async () => {
    const { run, sandbox } = await openAccountContext();
    expect(await run('maintain')).toMatchObject({ code: 0 });
    expect(sandbox.requests()).toEqual([]);
  });

  it('has nothing to do after a registration', async ({ context }) => {
    const result = await context.run('maintain --json');
    expect(JSON.parse(result.out)).toEqual([
      { name: 'default', status: 'running', did: null, notes: [], failure: null },
    ]);
  });

  it('resumes after the pause of the catalogue at 61 days', async () => {
    const context = await openRegistered();
    context.passDays(50);
    await expectEnd(context.run('maintain'), 0);
    expect(context.sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    context.passDays(11);
    expect(context.sandbox.subscriptions()).toMatchObject([{ id: context.id, status: 'paused' }]);
    const resumed = await expectEnd(context.run('maintain'), 0);
    expect(resumed.out).toContain('resumed');
    expect(context.sandbox.subscriptions()).toMatchObject([{ id: context.id, status: 'running' }]);
    const [gap] = await context.receiver.store.administration.gaps();
    expect((gap?.toUs ?? 0) - (gap?.fromUs ?? 0)).toBeGreaterThanOrEqual(11 * 86_400_000_000);
    expect((await historyOf(context))[0]).toMatchObject({ action: 'resumed', actor: 'maintain' });
  });

  it('recreates a subscription that the catalogue deleted after 366 days', async ({ context }) => {
    context.passDays(366);
    expect(context.sandbox.subscriptions()).toEqual([]);
    await expectEnd(context.run('maintain'), 0);
    expect(rows(context)).toEqual([{ name: 'default', status: 'running', filter }]);
    expect((await historyOf(context))[0]).toMatchObject({ action: 'created', actor: 'maintain' });
    expect(await context.receiver.store.administration.gaps()).toHaveLength(1);
    expect(await context.run('register --check')).toMatchObject({ code: 0 });
  });

  it('keeps a manual pause, reports it once, and never undoes it', async ({ context }) => {
    context.passDays(20);
    expect(await asPerson(context, context.id, { Status: 'paused' })).toBe(200);
    const first = await context.run('maintain');
    expect(first.out).toContain('changed by a person');
    context.passDays(70);
    await context.run('maintain');
    expect(context.sandbox.subscriptions()).toMatchObject([{ id: context.id, status: 'paused' }]);
    const notes = (await historyOf(context)).filter(({ action }) => action === 'noted');
    expect(notes).toHaveLength(1);
    expect(await context.run('register --yes')).toMatchObject({ code: 0 });
    expect(context.sandbox.subscriptions()).toMatchObject([{ id: context.id, status: 'running' }]);
  });

  it('keeps a pause by our own command, and maintains it again after resume', async ({
    context,
  }) => {
    expect(await context.run('subscriptions pause default')).toMatchObject({ code: 0 });
    context.passDays(100);
    await context.run('maintain');
    expect(context.sandbox.subscriptions()).toMatchObject([{ status: 'paused' }]);
    expect(await context.run('subscriptions resume default')).toMatchObject({ code: 0 });
    context.passDays(61);
    await context.run('maintain');
    expect(context.sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    const gaps = await context.receiver.store.administration.gaps();
    expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
  });

  it('reports an endpoint that was changed elsewhere, and keeps it', async ({ context }) => {
    const NotificationEndpoint = 'https://localhost:9/elsewhere';
    expect(await asPerson(context, context.id, { NotificationEndpoint })).toBe(200);
    const maintained = await context.run('maintain');
    expect(maintained.out).toContain(
      'In the catalogue, the endpoint of the subscription differs from the registration',
    );
    expect(context.sandbox.subscriptions()).toMatchObject([{ endpoint: NotificationEndpoint }]);
    const repaired = await context.run('register --yes');
    expect(repaired.out).toContain('change endpoint');
    expect(context.sandbox.subscriptions()).not.toMatchObject([{ endpoint: NotificationEndpoint }]);
  });

  it('exits 1 with the reason when the catalogue is down', async ({ context }) => {
    context.sandbox.service.change({ unavailable: true });
    await expectEnd(context.run('maintain'), 1, '503');
  });
});
