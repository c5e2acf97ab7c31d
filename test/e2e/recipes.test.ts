/**
 * The recipes for Knative and pgstac: the files of examples/ as a user has them, except for the URL and the start, in front of a broker
 * and a STAC API that are written from their published interfaces.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CloudEvent, HTTP } from 'cloudevents';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { startHook } from '../features/sinks/hook-server.ts';
import { startStacServer } from '../features/sinks/stac-server.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const read = (file: string) =>
  readFileSync(join(import.meta.dirname, '../../examples', file), 'utf8');

const scene = (name: string, sensed: string) => ({
  ProductId: `product-${name}`,
  ProductName: `${name}.SAFE`,
  value: {
    ...{ Id: `product-${name}`, Name: `${name}.SAFE`, PublicationDate: '2026-11-20T08:00:00Z' },
    ContentDate: { Start: sensed, End: sensed },
    Attributes: [
      { Name: 'productType', ValueType: 'String', Value: 'S2MSI2A' },
      { Name: 'platformShortName', ValueType: 'String', Value: 'SENTINEL-2' },
    ],
  },
});
const [l2a, l1c, old] = [
  scene('S2A_MSIL2A_20261120T063021_N0511_R108_T31UFR_20261120T070008', '2026-11-20T06:30:21Z'),
  scene('S2A_MSIL1C_20261120T063021_N0511_R108_T31UFR_20261120T065000', '2026-11-20T06:30:21Z'),
  scene('S2A_MSIL2A_20160102T103021_N0510_R108_T31UFR_20261120T070008', '2016-01-02T10:30:21Z'),
];
const pushed = [
  l2a,
  l1c,
  old,
  { ...l1c, SubscriptionEvent: 'deleted', value: { Name: l1c.ProductName } },
];

/** Starts a receiver with the configuration of an example, and pushes the scenes. */
async function run(config: string, files: Readonly<Record<string, string>> = {}) {
  const folder = temporaryDirectory();
  for (const [name, text] of Object.entries({ ...files, 'earshot.config.ts': config })) {
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  }
  const context = await createReceiverContext(folder);
  const receiver = await context.start({ EARSHOT_RECONCILE: 'off', EARSHOT_INDEX: 'off' });
  const send = createClient({ port: receiver.port, ca: context.ca, connections: 1 });
  for (const [i, fields] of pushed.entries()) {
    const body = JSON.stringify(notification(i + 1, fields));
    expect((await send('POST', '/notifications/all', body)).status).toBe(200);
  }
  return receiver;
}

it('Knative: two triggers select events by their attributes in binary mode', async () => {
  const triggers = parseAllDocuments(read('knative/trigger.yaml'))
    .map((document) => document.toJS())
    .filter(({ kind }) => kind === 'Trigger');
  const received: CloudEvent<string>[] = [];
  // A broker answers 202, and filters by exact attributes (knative.dev, Triggers).
  const broker = await startHook({
    answer: ({ headers, body }, response) => {
      received.push(HTTP.toEvent({ headers, body }) as CloudEvent<string>);
      response.writeHead(202).end();
    },
  });
  const config = read('knative/earshot.config.ts').replace(
    /webhook: '[^']*'/,
    `webhook: '${broker.url}', from: 'start'`,
  );
  const receiver = await run(config);
  await expect.poll(() => received.length).toBe(pushed.length);
  const started = triggers.map(({ metadata, spec }) => {
    const attributes = Object.entries<string>(spec.filter.attributes);
    const events = received.filter((event) =>
      attributes.every(([name, value]) => event[name] === value),
    );
    return [metadata.name, events.map(({ subject }) => `${subject}.SAFE`).toSorted()];
  });
  expect(started).toEqual([
    ['new-sentinel-2-l2a', [l2a.ProductName, old.ProductName].toSorted()],
    ['deletions', [l1c.ProductName]],
  ]);
  expect(await receiver.end('SIGTERM')).toEqual([0, null]);
});

it('pgstac: the API has the new scenes, in the collections of the catalogue', async () => {
  const api = await startStacServer({ token: 'a-token', missingStatus: 424 });
  const config = read('pgstac/earshot.config.ts').replace(
    /stac: '[^']*'/,
    `stac: '${api.url}', from: 'start'`,
  );
  const receiver = await run(config, { 'stac-token': 'a-token\n' });
  const isDeleted = () => api.requests().some((one) => one.startsWith('DELETE'));
  await expect.poll(isDeleted).toBe(true);
  await expect.poll(() => api.items().length).toBe(1);
  expect(api.items()).toMatchObject([
    { id: l2a.ProductName.replace('.SAFE', ''), collection: 'sentinel-2-l2a' },
  ]);
  expect(api.collections().toSorted()).toEqual(['sentinel-2-l1c', 'sentinel-2-l2a']);
  expect(await receiver.end('SIGTERM')).toEqual([0, null]);
});
