/** `earshot subscriptions` against the sandbox's catalogue. */
import { describe, expect, test } from 'vitest';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import {
  type AccountContext,
  asPerson,
  openAccountContext,
  rows,
  unmanaged,
} from './account-context.ts';

async function openContext(): Promise<AccountContext & { foreignId: string }> {
  const context = await openAccountContext();
  const { id } = context.sandbox.addSubscription(unmanaged('other'));
  const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
  expect(await context.run(command)).toMatchObject({ code: 0 });
  return { ...context, foreignId: id };
}

const it = test.extend('context', () => openContext());

describe('earshot subscriptions', () => {
  it('lists managed ones by name, and unmanaged ones without a name', async () => {
    const { run, foreignId, publicUrl } = await openContext();
    const listed = await printedJson(run('subscriptions list --json'));
    expect(listed).toMatchObject([
      { name: 'default', status: 'running', endpoint: `${publicUrl}/notifications/default` },
      { name: null, id: foreignId, type: 'push' },
    ]);
    expect(Object.keys(listed[0])).toEqual([
      ...'name id status type events filter endpoint submittedAt lastNotificationAt'.split(' '),
      ...'pausesAt cancelsAt changedByPerson'.split(' '),
    ]);
    const table = await run('subscriptions list');
    expect(table.out.split('\n')[1]).toMatch(/^default +running +- +created {2}push/);
  });

  it('fits 80 columns, and shows the id of unmanaged ones', async () => {
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
    expect(ours).toMatch(/^name or id +status .*notified \(UTC\) +events +type +filter\n/);
    expect(Math.max(...lengths(ours))).toBeLessThanOrEqual(80);
  });

  it('shows the status and the gaps of one', async ({ context: { run } }) => {
    await run('subscriptions pause default');
    const { out } = await run('subscriptions show default');
    expect(out).toMatch(/status +paused/);
    expect(out).toMatch(/gap .* to now: it was paused/);
    expect(await run('subscriptions show nobody')).toMatchObject({ code: 2 });
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

  it('resumes one that was registered as paused, and keeps it running from then on', async () => {
    const context = await openContext();
    await context.run('register --status paused --yes');
    expect(await context.run('subscriptions resume default')).toMatchObject({ code: 0 });
    const round = await context.run('maintain --json');
    expect(JSON.parse(round.out)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('refuses to resume a third one, and prints the next step', async ({ context }) => {
    await context.run('subscriptions pause default');
    context.sandbox.addSubscription(unmanaged('second'));
    await expectEnd(context.run('subscriptions resume default'), 1, 'Pause one first');
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
  });

  it('asks, and deletes a subscription', async () => {
    const context = await openContext();
    const refused = await context.run(['subscriptions', 'delete', 'default'], { answers: ['no'] });
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("Name eq 'x'");
    expect(await context.run(['subscriptions', 'delete', 'default'])).toMatchObject({ code: 2 });
    expect(rows(context)).toHaveLength(2);
    await expectEnd(context.run(['subscriptions', 'delete', 'default', '--yes']), 0);
    expect(rows(context).map(({ name }) => name)).toEqual(['other']);
    // A subscription that a command removed is not recreated.
    await context.run('maintain');
    expect(rows(context)).toHaveLength(1);
    const { out } = await context.run('subscriptions history default --json');
    expect(JSON.parse(out)[0]).toMatchObject({ action: 'deleted', actor: 'subscriptions' });
  });

  it('pauses one that the catalogue has paused, so that maintenance does not resume it', async () => {
    const context = await openContext();
    context.passDays(61);
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
    expect(await context.run('subscriptions pause default')).toMatchObject({ code: 0 });
    await context.run('maintain');
    expect(rows(context)[1]).toMatchObject({ status: 'paused' });
  });

  it('removes the local record of an interrupted deletion', async ({ context }) => {
    const id = context.sandbox.subscriptions()[1]?.id ?? '';
    expect(await asPerson(context, id)).toBe(204);
    await expectEnd(context.run('subscriptions delete default --yes'), 0, 'no longer exists');
    expect(await context.receiver.store.administration.registrations()).toEqual([]);
    expect(await context.run('subscriptions delete default --yes')).toMatchObject({
      code: 2,
    });
  });

  it('never changes unmanaged subscriptions', async ({ context }) => {
    for (const how of ['pause', 'resume', 'delete']) {
      const yes = how === 'delete' ? ['--yes'] : [];
      await expectEnd(
        context.run(['subscriptions', how, context.foreignId, ...yes]),
        1,
        'is unmanaged',
      );
    }
    expect(rows(context)[0]).toMatchObject({ name: 'other', status: 'running' });
  });
});
