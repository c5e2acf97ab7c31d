/** The answers of the services have the shape of the documented and recorded ones. */
import { existsSync, readFileSync } from 'node:fs';
import { beforeEach, describe, expect, it } from 'vitest';
import { send, startAccountWorld } from './account-world.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';
const fixture = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));

const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;

describe('the documented examples', () => {
  beforeEach((context) => {
    if (missing) context.skip(missing);
  });

  it.each(['create-push', 'create-pull'])('%s has the answer that is shown', async (name) => {
    const { call } = await startAccountWorld({
      allowRemote: true,
      service: { stageOrderReturned: true },
    });
    const request = fixture(`subscriptions/${name}-request.json`);
    const { status, json } = await call('POST', '/Subscriptions', request);
    expect(status).toBe(201);
    // The shown answers are older than SubscriptionType.
    const { Id, SubmissionDate, ...shown } = fixture(`subscriptions/${name}-201.json`);
    expect(json).toMatchObject(shown);
    const keys = Object.keys(json).filter((key) => key !== 'SubscriptionType');
    expect(keys).toEqual([
      'Id',
      ...Object.keys(shown).slice(0, -1),
      'SubmissionDate',
      '@odata.context',
    ]);
  });

  it('the answers to an edit and to a list have the fields that are shown', async () => {
    const { call, edit, list, create } = await startAccountWorld({ allowRemote: true });
    const request = fixture('subscriptions/create-push-request.json');
    const { json } = await call('POST', '/Subscriptions', request);
    await create({ SubscriptionType: 'pull' });
    const shownKeys = (shown: object) =>
      Object.keys(shown).filter((key) => key !== 'LastNotificationDate');
    const keysOf = (given: object) =>
      Object.keys(given).filter((key) => key !== 'SubscriptionType');
    const edited = await edit(json.Id, { Status: 'paused' });
    expect(keysOf(edited.json)).toEqual(shownKeys(fixture('subscriptions/patch-paused-200.json')));
    const shownList = fixture('subscriptions/info-list-200.json');
    expect((await list()).map(keysOf)).toEqual(shownList.map(shownKeys));
  });

  it.each(['read', 'ack'])('an unknown id is answered as shown for %s', async (name) => {
    const { call } = await startAccountWorld();
    const shown = fixture(`errors/subscriptions-${name}-404.json`);
    const [id] = /[\da-f-]{30,}/.exec(shown.detail.message) ?? [];
    const { status, json } = await call('GET', `/Subscriptions(${id})`);
    expect(status).toBe(404);
    const request_id = expect.stringMatching(uuid);
    expect(json).toEqual({ detail: { ...shown.detail, request_id } });
  });

  it('an odd body is answered with items like the recorded ones', async () => {
    const { create } = await startAccountWorld();
    const { response } = fixture('errors/products-422-2.json');
    const { status, json } = await create({ SubscriptionType: 'x' });
    expect(status).toBe(response.status.code);
    const itemKeys = ({ detail }: { detail: object[] }) => detail.map((item) => Object.keys(item));
    expect(itemKeys(json)).toEqual(itemKeys(response.body));
  });

  it('an error in the usual form repeats the id of its header', async () => {
    const { call } = await startAccountWorld();
    const { response } = fixture('errors/products-400-5.json');
    const { headers, json } = await call('PATCH', '/Subscriptions(x)', {});
    expect(Object.keys(json.detail)).toEqual(Object.keys(response.body.detail));
    expect(json.detail.request_id).toBe(headers.get('request-id'));
  });

  it('a login has the fields of the recorded one', async () => {
    const { login } = await startAccountWorld();
    const shown = fixture('identity/token-200.fake-tokens.json');
    const { json } = await login();
    for (const [name, value] of Object.entries(shown)) {
      expect(json[name], name).toEqual(expect.any(Object(value).constructor));
    }
    expect(json.token_type.toLowerCase()).toBe(shown.token_type);
  });

  it('the realm is described by fields of the recorded description', async () => {
    const { sandbox } = await startAccountWorld();
    const shown = fixture('identity/openid-configuration.json');
    const url = `${sandbox.catalogueUrl}/auth/realms/CDSE/.well-known/openid-configuration`;
    const { json } = await send(url, {});
    const pathOf = (text: string) => new URL(text).pathname;
    expect(pathOf(json.issuer)).toBe(pathOf(shown.issuer));
    expect(pathOf(json.token_endpoint)).toBe(pathOf(shown.token_endpoint));
    expect(Object.keys(json).filter((name) => !(name in shown))).toEqual([]);
    for (const grant of json.grant_types_supported) {
      expect(shown.grant_types_supported).toContain(grant);
    }
  });
});
