/** `earshot subscriptions` against the sandbox's catalogue. */
import { describe, expect, test } from 'vitest';
import {
  type AccountContext,
  asPerson,
  openAccountContext,
  rows,
  stranger,
} from './account-context.ts';
import { expectEnd, printedJson } from './fake-io.ts';

async function openContext(): Promise<AccountContext & { foreignId: string }> {
  const context = await openAccountContext();
  const { id } = context.sandbox.addSubscription(stranger('other'));
  const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
  expect(await context.run(command)).toMatchObject({ code: 0 });
  return { ...context, foreignId: id };
}

const it = test.extend('context', () => openContext());

describe('earshot subscriptions', () => {
  it('lists ours by name, and others without one', async () => {
    const { run, foreignId, publicUrl } = await openContext();
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
    const { run, foreignId } = await openContext();
    const terminal = { isTTY: true, columns: 80 };
    const lengths = (out: string) =>
      out
        .trimEnd()
        .split('\n')
        .map(({ length }) => length);
    const mixed = (await run('subscriptions', terminal)).out;
    expect(mixed).toContain(foreignId);
    expect(Math.max(...lengths(mixed))).toBeLessThanOrEqual(80);
    const alone = await openAccountContext();
    const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
    expect(await alone.run(command)).toMatchObject({ code: 0 });
    const ours = (await alone.run('subscriptions', terminal)).out;
    expect(ours).toMatch(/^name +status .*notified \(UTC\) +filter\n/);
    expect(Math.max(...lengths(ours))).toBeLessThanOrEqual(80);
  });

  it('shows until when one lives, and what was missed', async ({ context: { run } }) => {
    await run('subscriptions pause default');
    const { out } = await run('subscriptions show default');
    expect(out).toMatch(/status +paused, by command/);
    expect(out).toMatch(/gap .* to now: paused by command/);
    expect(await run('subscriptions show nobody')).toMatchObject({ code: 1 });
  });

  it('pauses and resumes, and closes the gap', async ({ context }) => {
    const { run } = context;
    expect(await run('subscriptions pause default')).toMatchObject({ code: 0 });
    expect(rows(context)[1]).toMatchObject({ name: 'default', status: 'paused' });
    expect(await run('subscriptions resume default')).toMatchObject({ code: 0 });
    expect(rows(context)[1]).toMatchObject({ name: 'default', status: 'running' });
    const gaps = await context.receiver.store.administration.gaps();
    expect(gaps).toHaveLength(1);
    expect(gaps[0]?.toUs).not.toBeNull();
  });

  it('resumes what was registered as paused, and maintains it as running from then on', async () => {
    const context = await openContext();
    await context.run('register --status paused --yes');
    expect(await context.run('subscriptions resume default')).toMatchObject({ code: 0 });
    const round = await context.run('maintain --json');
    expect(JSON.parse(round.out)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('does not resume a third one, and says what to do', async ({ context }) => {
    await context.run('subscriptions pause default');
    context.sandbox.addSubscription(stranger('second'));
    await expectEnd(context.run('subscriptions resume default'), 1, 'Pause another one first');
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
  });

  it.each(['cancel', 'delete'])('shows what goes, asks, and lets %s take it away', async (how) => {
    const context = await openContext();
    const refused = await context.run(['subscriptions', how, 'default'], { answers: ['no'] });
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("filter  Name eq 'x'");
    expect(await context.run(['subscriptions', how, 'default'])).toMatchObject({ code: 2 });
    expect(rows(context)).toHaveLength(2);
    await expectEnd(context.run(['subscriptions', how, 'default', '--yes']), 0);
    expect(rows(context).map(({ name }) => name)).toEqual(['other']);
    // What a command took away stays away.
    await context.run('maintain');
    expect(rows(context)).toHaveLength(1);
    const { out } = await context.run('subscriptions history default --json');
    const action = how === 'cancel' ? 'cancelled' : 'deleted';
    expect(JSON.parse(out)[0]).toMatchObject({ action, actor: 'subscriptions' });
  });

  it('pauses what the catalogue has paused already, so that maintenance leaves it', async () => {
    const context = await openContext();
    context.passDays(61);
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
    expect(await context.run('subscriptions pause default')).toMatchObject({ code: 0 });
    await context.run('maintain');
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
  });

  it('forgets what a deletion that was cut short has left here', async ({ context }) => {
    const id = context.sandbox.subscriptions()[1]?.id ?? '';
    expect(await asPerson(context, id)).toBe(204);
    await expectEnd(
      context.run('subscriptions delete default --yes'),
      0,
      'no longer exists in the account',
    );
    expect(await context.receiver.store.administration.registrations()).toEqual([]);
    expect(await context.run('subscriptions delete default --yes')).toMatchObject({
      code: 1,
    });
  });

  it('never touches what others made', async ({ context }) => {
    for (const how of ['pause', 'resume', 'cancel', 'delete']) {
      const yes = how === 'cancel' || how === 'delete' ? ['--yes'] : [];
      await expectEnd(
        context.run(['subscriptions', how, context.foreignId, ...yes]),
        1,
        'is unmanaged',
      );
    }
    expect(rows(context)[0]).toMatchObject({ name: 'other', status: 'running' });
  });
});
