/** `earshot subscriptions` against the sandbox's catalogue. */
import { describe, expect, test } from 'vitest';
import { type AccountWorld, asPerson, openAccountWorld, rows, stranger } from './account-world.ts';
import { expectEnd, printedJson } from './fake-io.ts';

async function openWorld(): Promise<AccountWorld & { foreignId: string }> {
  const world = await openAccountWorld();
  const { id } = world.sandbox.addSubscription(stranger('other'));
  const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
  expect(await world.run(command)).toMatchObject({ code: 0 });
  return { ...world, foreignId: id };
}

const it = test.extend('world', () => openWorld());

describe('earshot subscriptions', () => {
  it('lists ours by name, and others without one', async () => {
    const { run, foreignId, publicUrl } = await openWorld();
    const listed = await printedJson(run('subscriptions list --json'));
    expect(listed).toMatchObject([
      { name: 'default', status: 'running', endpoint: `${publicUrl}/notifications/default` },
      { name: null, id: foreignId, type: 'push' },
    ]);
    expect(Object.keys(listed[0])).toEqual([
      ...'name id status type events filter endpoint submittedAt lastNotificationAt'.split(' '),
      ...'pausesAt cancelsAt heldBy'.split(' '),
    ]);
    const table = await run('subscriptions list');
    expect(table.out.split('\n')[1]).toMatch(/^default {2}running {2}push {2}created/);
  });

  it('fits 80 columns: the id of one without a name stays, of the others the times', async () => {
    const { run, foreignId } = await openWorld();
    const terminal = { isTTY: true, columns: 80 };
    const lengths = (out: string) =>
      out
        .trimEnd()
        .split('\n')
        .map(({ length }) => length);
    const mixed = (await run('subscriptions', terminal)).out;
    expect(mixed).toContain(foreignId);
    expect(Math.max(...lengths(mixed))).toBeLessThanOrEqual(80);
    const alone = await openAccountWorld();
    const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
    expect(await alone.run(command)).toMatchObject({ code: 0 });
    const ours = (await alone.run('subscriptions', terminal)).out;
    expect(ours).toMatch(/^name +status .*notified \(UTC\) +filter\n/);
    expect(Math.max(...lengths(ours))).toBeLessThanOrEqual(80);
  });

  it('shows until when one lives, and what was missed', async ({ world: { run } }) => {
    await run('subscriptions pause default');
    const { out } = await run('subscriptions show default');
    expect(out).toMatch(/status +paused, held by command/);
    expect(out).toMatch(/missed .* to now: paused by command/);
    expect(await run('subscriptions show nobody')).toMatchObject({ code: 1 });
  });

  it('pauses and resumes, and closes the gap', async ({ world }) => {
    const { run } = world;
    expect(await run('subscriptions pause default')).toMatchObject({ code: 0 });
    expect(rows(world)[1]).toMatchObject({ name: 'default', status: 'paused' });
    expect(await run('subscriptions resume default')).toMatchObject({ code: 0 });
    expect(rows(world)[1]).toMatchObject({ name: 'default', status: 'running' });
    const gaps = await world.receiver.store.administration.gaps();
    expect(gaps).toHaveLength(1);
    expect(gaps[0]?.toUs).not.toBeNull();
  });

  it('resumes what was registered as paused, and maintains it as running from then on', async () => {
    const world = await openWorld();
    await world.run('register --status paused --yes');
    expect(await world.run('subscriptions resume default')).toMatchObject({ code: 0 });
    const round = await world.run('maintain --json');
    expect(JSON.parse(round.out)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('does not resume a third one, and says what to do', async ({ world }) => {
    await world.run('subscriptions pause default');
    world.sandbox.addSubscription(stranger('second'));
    await expectEnd(world.run('subscriptions resume default'), 1, 'Pause one first');
    expect(rows(world)[1]).toMatchObject({ status: 'paused' });
  });

  it.each(['cancel', 'delete'])('shows what goes, asks, and lets %s take it away', async (how) => {
    const world = await openWorld();
    const refused = await world.run(['subscriptions', how, 'default'], { answers: ['no'] });
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("filter  Name eq 'x'");
    expect(await world.run(['subscriptions', how, 'default'])).toMatchObject({ code: 2 });
    expect(rows(world)).toHaveLength(2);
    await expectEnd(world.run(['subscriptions', how, 'default', '--yes']), 0);
    expect(rows(world).map(({ name }) => name)).toEqual(['other']);
    // What a command took away stays away.
    await world.run('maintain');
    expect(rows(world)).toHaveLength(1);
    const { out } = await world.run('subscriptions history default --json');
    const action = how === 'cancel' ? 'cancelled' : 'deleted';
    expect(JSON.parse(out)[0]).toMatchObject({ action, actor: 'subscriptions' });
  });

  it('pauses what the catalogue has paused already, so that maintenance leaves it', async () => {
    const world = await openWorld();
    world.passDays(61);
    expect(rows(world)[1]).toMatchObject({ status: 'paused' });
    expect(await world.run('subscriptions pause default')).toMatchObject({ code: 0 });
    await world.run('maintain');
    expect(rows(world)[1]).toMatchObject({ status: 'paused' });
  });

  it('forgets what a deletion that was cut short has left here', async ({ world }) => {
    const id = world.sandbox.subscriptions()[1]?.id ?? '';
    expect(await asPerson(world, id)).toBe(204);
    await expectEnd(world.run('subscriptions delete default --yes'), 0, 'gone already');
    expect(await world.receiver.store.administration.registrations()).toEqual([]);
    expect(await world.run('subscriptions delete default --yes')).toMatchObject({
      code: 1,
    });
  });

  it('never touches what others made', async ({ world }) => {
    for (const how of ['pause', 'resume', 'cancel', 'delete']) {
      const yes = how === 'cancel' || how === 'delete' ? ['--yes'] : [];
      await expectEnd(world.run(['subscriptions', how, world.foreignId, ...yes]), 1, 'is not ours');
    }
    expect(rows(world)[0]).toMatchObject({ name: 'other', status: 'running' });
  });
});
