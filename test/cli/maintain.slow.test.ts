/** `earshot maintain` against the sandbox's catalogue, over months of its clock. */
import { describe, expect, test } from 'vitest';
import { type AccountWorld, asPerson, openAccountWorld, rows } from './account-world.ts';
import { expectEnd, printedJson } from './fake-io.ts';

const filter = "Collection/Name eq 'SENTINEL-2'";
const registered = ['register', '--filter', filter, '--yes'];

async function openRegistered(): Promise<AccountWorld & { id: string }> {
  const world = await openAccountWorld();
  expect(await world.run(registered)).toMatchObject({ code: 0 });
  return { ...world, id: world.sandbox.subscriptions()[0]?.id ?? '' };
}

const it = test.extend('world', () => openRegistered());

async function historyOf({ run }: AccountWorld): Promise<{ action: string; actor: string }[]> {
  return await printedJson(run('subscriptions history --json'));
}

describe('earshot maintain', () => {
  it('asks nobody while nothing is registered', async () => {
    const { run, sandbox } = await openAccountWorld();
    expect(await run('maintain')).toMatchObject({ code: 0 });
    expect(sandbox.requests()).toEqual([]);
  });

  it('finds nothing to do after a registration', async ({ world }) => {
    const result = await world.run('maintain --json');
    expect(JSON.parse(result.out)).toEqual([
      { name: 'default', status: 'running', did: null, notes: [], failure: null },
    ]);
  });

  it('warns before the catalogue pauses, and resumes what it has paused after 61 days', async () => {
    const world = await openRegistered();
    world.passDays(50);
    const warned = await world.run('maintain');
    expect(warned.out).toContain('will pause it in 10 days');
    expect(world.sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    world.passDays(11);
    expect(world.sandbox.subscriptions()).toMatchObject([{ id: world.id, status: 'paused' }]);
    const resumed = await expectEnd(world.run('maintain'), 0);
    expect(resumed.out).toContain('resumed');
    expect(world.sandbox.subscriptions()).toMatchObject([{ id: world.id, status: 'running' }]);
    const [gap] = await world.receiver.store.administration.gaps();
    expect((gap?.toUs ?? 0) - (gap?.fromUs ?? 0)).toBeGreaterThanOrEqual(11 * 86_400_000_000);
    expect((await historyOf(world))[0]).toMatchObject({ action: 'resumed', actor: 'maintain' });
  });

  it('makes anew what the catalogue deleted after 366 days', async ({ world }) => {
    world.passDays(366);
    expect(world.sandbox.subscriptions()).toEqual([]);
    await expectEnd(world.run('maintain'), 0);
    expect(rows(world)).toEqual([{ name: 'default', status: 'running', filter }]);
    expect((await historyOf(world))[0]).toMatchObject({ action: 'recreated', actor: 'maintain' });
    expect(await world.receiver.store.administration.gaps()).toHaveLength(1);
    expect(await world.run('register --check')).toMatchObject({ code: 0 });
  });

  it('leaves a pause by a person, says so once, and never fights it', async ({ world }) => {
    world.passDays(20);
    expect(await asPerson(world, world.id, { Status: 'paused' })).toBe(200);
    const first = await world.run('maintain');
    expect(first.out).toContain('was paused at the catalogue');
    world.passDays(70);
    await world.run('maintain');
    expect(world.sandbox.subscriptions()).toMatchObject([{ id: world.id, status: 'paused' }]);
    const notes = (await historyOf(world)).filter(({ action }) => action === 'noted');
    expect(notes).toHaveLength(1);
    expect(await world.run('register --yes')).toMatchObject({ code: 0 });
    expect(world.sandbox.subscriptions()).toMatchObject([{ id: world.id, status: 'running' }]);
  });

  it('leaves what a person deleted, until register is told otherwise', async ({ world }) => {
    expect(await asPerson(world, world.id)).toBe(204);
    const told = await world.run('maintain');
    expect(told.out).toContain('was deleted at the catalogue');
    expect(world.sandbox.subscriptions()).toEqual([]);
    expect(await world.run('register --yes')).toMatchObject({ code: 0 });
    expect(rows(world)).toHaveLength(1);
  });

  it('leaves what our own command paused, and takes it back with resume', async ({ world }) => {
    expect(await world.run('subscriptions pause default')).toMatchObject({ code: 0 });
    world.passDays(100);
    await world.run('maintain');
    expect(world.sandbox.subscriptions()).toMatchObject([{ status: 'paused' }]);
    expect(await world.run('subscriptions resume default')).toMatchObject({ code: 0 });
    world.passDays(61);
    await world.run('maintain');
    expect(world.sandbox.subscriptions()).toMatchObject([{ status: 'running' }]);
    const gaps = await world.receiver.store.administration.gaps();
    expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
  });

  it('tells an endpoint that was changed elsewhere, and leaves it', async ({ world }) => {
    const NotificationEndpoint = 'https://localhost:9/elsewhere';
    expect(await asPerson(world, world.id, { NotificationEndpoint })).toBe(200);
    const told = await world.run('maintain');
    expect(told.out).toContain('Its endpoint at the catalogue is not as registered');
    expect(world.sandbox.subscriptions()).toMatchObject([{ endpoint: NotificationEndpoint }]);
    const mended = await world.run('register --yes');
    expect(mended.out).toContain('change endpoint');
    expect(world.sandbox.subscriptions()).not.toMatchObject([{ endpoint: NotificationEndpoint }]);
  });

  it('exits 1 with the reason when the catalogue is down', async ({ world }) => {
    world.sandbox.service.change({ unavailable: true });
    await expectEnd(world.run('maintain'), 1, '503');
  });
});
