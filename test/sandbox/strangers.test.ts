/** Subscriptions that others have in the account, put there by a test or on the control port. */
import { describe, expect, it } from 'vitest';
import { SubscriptionRefusal } from '../../src/sandbox/account.ts';
import { SandboxConfigurationError } from '../../src/sandbox/configuration-error.ts';
import { endpoint, startAccountWorld, startMs } from './account-world.ts';

const password = 'hunter2';

describe('a stranger', () => {
  it('may have a push or a pull subscription, seen in the list as any other', async () => {
    const { sandbox, control, list } = await startAccountWorld();
    const id = '7ca682c3-7b21-4e9b-952e-874798101340';
    const added = sandbox.addSubscription({
      id,
      endpoint,
      username: 'a',
      password,
      filter: 'Online eq true',
    });
    const { status, json, text } = await control('POST', '/subscriptions', {
      type: 'pull',
      status: 'paused',
      events: ['deleted'],
      submissionDate: '2026-01-01T00:00:00.000Z',
    });
    expect(status).toBe(201);
    expect(json).toMatchObject({
      type: 'pull',
      endpoint: null,
      statusDate: '2026-01-01T00:00:00.000Z',
    });
    expect(await list()).toMatchObject([
      { Id: id, SubscriptionType: 'push', Status: 'running', NotificationEndpoint: endpoint },
      { Id: json.id, SubscriptionType: 'pull', Status: 'paused', SubscriptionEvent: ['deleted'] },
    ]);
    expect(added.submissionDate).toBe(new Date(startMs).toISOString());
    expect(sandbox.subscriptions()).toEqual([added, json]);
    const shown = await control('GET', '/subscriptions');
    expect(shown.json).toEqual({ subscriptions: [added, json] });
    expect(`${shown.text}${text}`).not.toContain(password);
  });

  it('counts for the limits', async () => {
    const { sandbox, create, control } = await startAccountWorld();
    sandbox.addSubscription({ type: 'pull' });
    sandbox.addSubscription({ type: 'pull' });
    expect((await create()).status).toBe(400);
    expect(() => sandbox.addSubscription({ type: 'pull' })).toThrow(SubscriptionRefusal);
    const refused = await control('POST', '/subscriptions', { type: 'pull' });
    expect(refused.status).toBe(409);
    expect(refused.json.detail).toContain('running subscriptions (2)');
    sandbox.service.change({ runningMax: 3 });
    expect((await control('POST', '/subscriptions', { type: 'pull' })).status).toBe(201);
  });

  it.each([
    ['another machine', { endpoint: 'https://endpoint.example/' }],
    ['a wrong filter', { type: 'pull', filter: 'foo eq 1' }],
  ])('with %s is refused', async (_, subscription) => {
    const { control, sandbox } = await startAccountWorld();
    const { status, json } = await control('POST', '/subscriptions', subscription);
    expect(status).toBe(400);
    expect(json.detail).toMatch(/not on this machine|Invalid field: foo/);
    expect(sandbox.subscriptions()).toEqual([]);
  });

  it('cannot take the id of another', async () => {
    const { sandbox } = await startAccountWorld();
    const { id } = sandbox.addSubscription({ type: 'pull' });
    expect(() => sandbox.addSubscription({ type: 'pull', id: id.toUpperCase() })).toThrow(
      /already/,
    );
    expect(sandbox.subscriptions()).toHaveLength(1);
  });

  it.each([
    [{ type: 'push' }, 'endpoint'],
    [{ type: 'pull', endpoint }, 'endpoint'],
    [{ type: 'pull', status: 'cancelled' }, 'status'],
    [{ type: 'pull', events: [] }, 'events'],
    [{ type: 'pull', submissionDate: 'yesterday' }, 'submissionDate'],
    [{ type: 'pull', colour: 'red' }, 'colour'],
  ])('is not made of %j', async (subscription, field) => {
    const { control, sandbox } = await startAccountWorld();
    const { status, json } = await control('POST', '/subscriptions', subscription);
    expect(status).toBe(400);
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    // The cast lets a test make the mistakes that the types forbid.
    const add = () => sandbox.addSubscription(subscription as object);
    expect(add).toThrow(SandboxConfigurationError);
    expect(add).toThrow(field);
  });
});
