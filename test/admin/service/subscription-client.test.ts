/** What the subscription API's client makes of each answer. */

import { describe, expect, it } from 'vitest';
import { createSubscriptionClient } from '../../../src/admin/service/subscription-client.ts';
import { errorText } from '../../../src/domain/app-error.ts';
import { freePort } from '../../helpers/free-ports.ts';
import type { Answer } from '../../http/answering-server.ts';
import {
  errorOf,
  id,
  listedTokens,
  notFound,
  shown,
  startStandIn,
  wanted,
} from './catalogue-stand-in.ts';

describe('an answer of success', () => {
  it.each<Answer>([
    { status: 201 },
    { status: 201, body: 'created' },
    { status: 200, body: [] },
    { status: 201, body: { Id: id } },
    { status: 201, body: '{"Id":', headers: { 'Content-Type': 'application/json' } },
  ])('to a creation that cannot be read is null (%j)', async (answer) => {
    const { client } = await startStandIn([answer]);
    expect(await client.create(wanted)).toBeNull();
  });

  it('to an edit that shows another status is not believed', async () => {
    const { client } = await startStandIn([{ status: 200, body: shown }]);
    const edit = client.edit(id, { status: 'paused' });
    await expect(edit).rejects.toMatchObject({ code: 'conflict' });
  });

  it.each<Answer>([{ status: 200, body: shown }, { status: 204 }, { status: 200, body: '<html>' }])(
    'to an edit or an end is taken whatever its body is (%j)',
    async (answer) => {
      const { client, requests } = await startStandIn([answer]);
      await client.edit(id, { status: 'running' });
      await client.cancel(id);
      await client.delete(id);
      expect(requests).toHaveLength(3);
    },
  );

  it.each([
    [{ Id: id }, 'item 1 of 2 (from 0) lacks Status'],
    [{}, 'item 1 of 2 (from 0) lacks Id and Status'],
    [null, 'item 1 of 2 (from 0) is not an object'],
    [{ ...shown, Id: '' }, 'lacks Id'],
  ])('to a list with an item that cannot be read is an error (%j)', async (item, words) => {
    const { client } = await startStandIn([{ body: [shown, item] }]);
    const error = await errorOf(client.list());
    expect([error.code, errorText(error)]).toEqual(['unavailable', expect.stringContaining(words)]);
  });

  it.each<Answer>([{ body: { value: [] } }, { body: '<html>' }, { status: 204 }])(
    'to a list that is none is an error (%j)',
    async (answer) => {
      const { client } = await startStandIn([answer]);
      const error = await errorOf(client.list());
      expect([error.code, errorText(error)]).toEqual([
        'unavailable',
        "The catalogue's list of subscriptions cannot be read: it is not a JSON array. Check EARSHOT_CATALOGUE_URL.",
      ]);
    },
  );
});

describe('one subscription', () => {
  const other = { ...shown, Id: 'another-id' };
  const listWith = (items: unknown[], answer: Answer) =>
    startStandIn(({ path }) => (path.endsWith('/Info') ? { body: items } : answer));

  it('is null when there is none', async () => {
    expect(await (await listWith([other], notFound)).client.get(id)).toBeNull();
  });

  it.each<Answer>([
    { status: 404, body: { detail: 'Invalid odata path' } },
    { status: 400, body: { detail: 'Invalid odata path' } },
    { status: 404, body: { detail: 'Not Found' } },
    { status: 405, body: { detail: 'Method Not Allowed' } },
    { status: 200, body: '<html>' },
  ])('is looked up in the list where the service has no such call (%j)', async (answer) => {
    const { client } = await listWith([other, { ...shown, Id: id.toUpperCase() }], answer);
    expect((await client.get(id))?.id).toBe(id.toUpperCase());
    expect(await (await listWith([other], answer)).client.get(id)).toBeNull();
  });

  it('is not looked up elsewhere when the service is down', async () => {
    const { client, requests } = await listWith([shown], { status: 503 });
    expect((await errorOf(client.get(id))).code).toBe('unavailable');
    expect(requests.every(({ path }) => !path.endsWith('/Info'))).toBe(true);
  });

  it('that is gone already may be cancelled and deleted', async () => {
    const { client, requests } = await startStandIn([notFound]);
    await client.cancel(id);
    await client.delete(id);
    expect(requests.map(({ method }) => method)).toEqual(['PATCH', 'DELETE']);
  });

  it.each<Answer>([
    { status: 410, body: { detail: 'Gone.' } },
    { status: 409, body: { detail: 'Cancelled before.' } },
    { status: 404, body: { detail: 'Not Found' } },
  ])('that may be gone is looked for in the list before that is believed (%j)', async (answer) => {
    await (await listWith([other], answer)).client.delete(id);
    const { client } = await listWith([shown], answer);
    await errorOf(client.delete(id));
    await errorOf(client.cancel(id));
  });

  it('is not taken for deleted when the address is wrong', async () => {
    const { client } = await startStandIn([{ status: 404, body: '<html><title>404</title>' }]);
    const error = await errorOf(client.delete(id));
    expect([error.code, errorText(error)]).toEqual([
      'invalid',
      'The catalogue refused to list subscriptions (404). Check EARSHOT_CATALOGUE_URL. It says: (a web page) 404',
    ]);
  });

  it('that is gone cannot be edited', async () => {
    const { client } = await startStandIn([notFound]);
    const error = await errorOf(client.edit(id, { status: 'paused' }));
    expect([error.code, errorText(error)]).toEqual([
      'not_found',
      `The catalogue has no such subscription, so it could not change subscription ${id} (404, request id r-404). List what is there. It says: Subscription with id ${id} not found.`,
    ]);
  });
});

describe('a creation', () => {
  it.each<Answer>(['cut', 'hang', { status: 503 }, { status: 500 }, { status: 429 }])(
    'is sent once, and no more (%j)',
    async (answer) => {
      const { client, requests } = await startStandIn([answer], { attemptTimeoutMs: 300 });
      const error = await errorOf(client.create(wanted));
      const tooMany = typeof answer === 'object' && 'status' in answer && answer.status === 429;
      expect(error.code).toBe(tooMany ? 'too_many' : 'unavailable');
      expect(requests).toHaveLength(1);
    },
  );

  it('that was refused for its token is sent again with another', async () => {
    const unauthorized = { status: 401, body: { detail: 'Unauthorized' } };
    const { client, requests, refused } = await startStandIn([
      unauthorized,
      { status: 201, body: shown },
    ]);
    expect((await client.create(wanted))?.id).toBe(id);
    expect(refused).toEqual(['first-token']);
    expect(requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first-token',
      'Bearer second-token',
    ]);
  });
});

describe('a token that is refused', () => {
  it.each<Answer>([
    { status: 401 },
    { status: 401, body: { detail: 'Unauthorized' } },
    { status: 403, body: { detail: 'Not authenticated' } },
    { status: 403, body: { detail: { message: 'Token has expired', request_id: 'r' } } },
  ])('is replaced once, and then that is that (%j)', async (answer) => {
    const { client, requests, refused } = await startStandIn([answer]);
    const error = await errorOf(client.list());
    expect(error.code).toBe('unauthorized');
    expect(errorText(error)).toContain('The catalogue does not accept the access token');
    expect(refused).toEqual(['first-token', 'second-token']);
    expect(requests).toHaveLength(2);
  });

  it('is another matter than a request that is not allowed', async () => {
    const answer = { status: 403, body: { detail: 'Quota of this account is used up.' } };
    const { client, refused } = await startStandIn([answer]);
    const error = await errorOf(client.list());
    expect([error.code, refused]).toEqual(['invalid', []]);
  });
});

it('a catalogue that cannot be reached is told with what was wanted', async () => {
  const host = `127.0.0.1:${await freePort()}`;
  const client = createSubscriptionClient({
    catalogueUrl: `http://${host}`,
    tokens: listedTokens().tokens,
    fetch,
    random: () => 0,
    timing: { retryDelayMs: 1 },
  });
  const error = await errorOf(client.create(wanted));
  expect([error.code, errorText(error)]).toEqual([
    'unavailable',
    `Could not create the subscription: the catalogue (${host}) cannot be asked: the connection was refused (ECONNREFUSED). Try again later, or check EARSHOT_CATALOGUE_URL.`,
  ]);
});
