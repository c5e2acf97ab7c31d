/** `earshot subscriptions` against the sandbox's catalogue. */
import { describe, expect, test } from 'vitest';
import { expectEnd, printedJson } from '../../helpers/fake-io.ts';
import { type AccountContext, openAccountContext, rows, unmanaged } from './account-context.ts';

async function openContext(): Promise<AccountContext & { foreignId: string }> {
  const context = await openAccountContext();
  const { id } = context.sandbox.addSubscription(unmanaged('other'));
  const command = ['register', '--event', 'created', '--filter', "Name eq 'x'", '--yes'];
  expect(await context.run(command)).toMatchObject({ code: 0 });
  return { ...context, foreignId: id };
}

const it = test.extend('context', () => openContext());

describe('earshot subscriptions', () => {
  it('lists managed ones by name, and unmanaged ones by id, within 80 columns', async ({
    context: { run, foreignId, publicUrl },
  }) => {
    const listed = await printedJson(run('subscriptions list --json'));
    expect(listed).toMatchObject([
      { name: 'default', status: 'running', endpoint: `${publicUrl}/notifications/default` },
      { name: null, id: foreignId, type: 'push' },
    ]);
    expect(Object.keys(listed[0])).toEqual([
      ...'name id status type events filter endpoint submittedAt lastNotificationAt'.split(' '),
      ...'pausesAt cancelsAt changedByPerson'.split(' '),
    ]);
    const { out: table } = await run('subscriptions list');
    expect(table).toMatch(/\ndefault +running +- +created {2}push/);
    const { out } = await run('subscriptions', { isTTY: true, columns: 80 });
    expect(out).toContain(foreignId);
    for (const line of out.split('\n')) expect(line.length).toBeLessThanOrEqual(80);
  });

  it('pauses and resumes one, and shows its status and gap', async ({ context }) => {
    const { run } = context;
    await expectEnd(run('subscriptions pause default'), 0);
    expect(rows(context)[1]).toMatchObject({ name: 'default', status: 'paused' });
    const { out } = await run('subscriptions show default');
    expect(out).toMatch(/status +paused[\s\S]*gap .* to now: it was paused/);
    await expectEnd(run('subscriptions resume default'), 0);
    expect(rows(context)[1]).toMatchObject({ name: 'default', status: 'running' });
    const gaps = await context.receiver.store.administration.gaps();
    expect(gaps).toMatchObject([{ toUs: expect.any(Number) }]);
    await expectEnd(run('subscriptions show nobody'), 2);
  });

  it('asks, and deletes a subscription', async () => {
    const context = await openContext();
    const argv = 'subscriptions delete default';
    await expectEnd(context.run(argv, { answers: ['no'] }), 1, "Name eq 'x'");
    await expectEnd(context.run(argv), 2);
    expect(rows(context)).toHaveLength(2);
    await expectEnd(context.run(`${argv} --yes`), 0);
    expect(rows(context).map(({ name }) => name)).toEqual(['other']);
    // A subscription that a command removed is not recreated.
    await context.run('maintain');
    expect(rows(context)).toHaveLength(1);
    const { out } = await context.run('subscriptions history default --json');
    expect(JSON.parse(out)[0]).toMatchObject({ action: 'deleted', actor: 'subscriptions' });
  });
});
