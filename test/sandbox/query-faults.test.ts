/** The product lists when they are slow, refused or broken. */
import { expect, it } from 'vitest';
import type { ServiceSettingsInput } from '../../src/sandbox/services/service-settings.ts';
import { send, startAccountWorld, startMs } from './account-world.ts';

const order = { $orderby: 'PublicationDate asc', $top: '5' };

async function startWorld(service: ServiceSettingsInput = {}) {
  const world = await startAccountWorld({ service });
  await world.publish(5);
  const root = `${world.sandbox.catalogueUrl}/odata/v1`;
  const ask = (path = '/Products') => send(`${root}${path}?${new URLSearchParams(order)}`, {});
  return { ...world, ask };
}

it('spoils the next lists, as many as were ordered, and no others', async () => {
  const { ask, sandbox } = await startWorld();
  const right = await ask();
  expect(right.json.value).toHaveLength(5);
  const next = { rateLimited: 1, serverError: 1, htmlPage: 1, connectionCut: 1, brokenJson: 1 };
  sandbox.service.change({ nextQueries: { ...next, valueMissing: 1, outOfOrder: 1 } });
  const limited = await ask();
  expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '5']);
  // By its id a product is always told.
  expect((await ask(`/Products(${right.json.value[0].Id})`)).status).toBe(200);
  expect((await ask('/DeletedProducts')).status).toBe(500);
  const html = await ask();
  expect([html.status, html.headers.get('content-type')]).toEqual([200, 'text/html']);
  await expect(ask()).rejects.toThrow(/terminated|fetch failed/);
  await expect(ask()).rejects.toThrow(SyntaxError);
  const valueless = await ask();
  expect([valueless.status, valueless.json]).toEqual([
    200,
    { '@odata.context': right.json['@odata.context'] },
  ]);
  const disordered = await ask();
  expect(disordered.json.value).toEqual(right.json.value.toReversed());
  expect((await ask()).json).toEqual(right.json);
  expect(Object.values(sandbox.service.current().nextQueries)).toEqual(Array(7).fill(0));
});

it('spoils a share of the lists, the same ones for the same seed', async () => {
  const statuses = async () => {
    const { ask } = await startWorld({
      queryFaults: { serverError: 0.5 },
      queryRetryAfterSeconds: null,
    });
    const answers: number[] = [];
    for (let index = 0; index < 40; index += 1) answers.push((await ask()).status);
    return answers;
  };
  const first = await statuses();
  expect(new Set(first)).toEqual(new Set([200, 500]));
  expect(await statuses()).toEqual(first);
});

it('says not when to come again where it is told so', async () => {
  const { ask } = await startWorld({
    nextQueries: { rateLimited: 1 },
    queryRetryAfterSeconds: null,
  });
  const { status, headers } = await ask();
  expect([status, headers.has('retry-after')]).toEqual([429, false]);
});

it('keeps answers about products back until their time', async () => {
  const { ask, sandbox } = await startWorld({ queryDelayMs: 3_000 });
  const asking = ask();
  await expect
    .poll(() => sandbox.requests().some(({ path }) => path.endsWith('Products')))
    .toBe(true);
  expect(sandbox.requests().at(-1)?.status).toBeNull();
  sandbox.clock.advance(3_000);
  expect((await asking).headers.get('date')).toBe(new Date(startMs + 3_000).toUTCString());
});

it('tells products only to whoever has a token where it is told so', async () => {
  const { ask, call } = await startWorld({ queriesNeedToken: true });
  expect((await ask()).status).toBe(401);
  expect((await call('GET', '/Products')).json.value).toHaveLength(5);
});

it('refuses unknown faults, and changes only those that are named', async () => {
  const { control } = await startWorld({ queryFaults: { outOfOrder: 0.25 } });
  const wrong = await control('PATCH', '/service', { nextQueries: { hang: 1 } });
  expect([wrong.status, wrong.json.detail]).toEqual([400, expect.stringContaining('nextQueries')]);
  const { json } = await control('PATCH', '/service', { queryFaults: { serverError: 0 } });
  expect(json.queryFaults).toMatchObject({ outOfOrder: 0.25, serverError: 0 });
});
