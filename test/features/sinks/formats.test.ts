/** CloudEvents, read by the SDK of the CloudEvents project, and WIS2 Notification Messages. */
import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SinkDocument } from '../../../src/features/sinks/document.ts';
import { openTarget, type SinkTarget } from '../../../src/features/sinks/registry.ts';
import type { OpenContext } from '../../../src/features/sinks/target.ts';
import { startHook } from './hook-server.ts';
import { hasNats, startNats } from './nats-server.ts';
import { startBroker } from './simulated-broker.ts';
import { messageUrls, mqttTarget, natsTarget, webhookTarget } from './sink-definition.ts';
import { sinkDocument } from './sink-items.ts';

const format = 'cloudevents' as const;

/** Checks the attributes against the document that the event contains. */
function expectEvent(received: ReturnType<typeof HTTP.toEvent>, type: string): void {
  const event = received as CloudEvent<unknown>;
  const data = event.data as SinkDocument;
  expect(event.validate()).toBe(true);
  expect(event).toMatchObject({
    specversion: '1.0',
    id: data.id,
    source: 'https://earshot.example.org',
    type,
    subject: data.productId,
    datacontenttype: 'application/json',
  });
  expect(Date.parse(event.time ?? '')).toBe(Date.parse(data.notificationDate ?? data.receivedAt));
  expect(data).toMatchObject({
    productId: expect.any(String),
    value: { Name: expect.any(String) },
  });
}

describe('a CloudEvent', () => {
  it('is the signed body of a webhook', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const hook = await startHook();
    const notificationDate = '2026-11-20T06:00:00.123000Z';
    await send(webhookTarget(hook.url, { secret, format }), [
      { event: 'modified', notificationDate },
    ]);
    const { headers = {}, body = '' } = hook.received[0] ?? {};
    expect(headers['content-type']).toBe('application/cloudevents+json');
    new Webhook(secret).verify(body, headers as Record<string, string>);
    expectEvent(HTTP.toEvent({ headers, body }), 'internal.earshot.product.modified');
  });

  it.skipIf(!hasNats)('is a message in a stream (needs nats-server)', async () => {
    const server = await startNats();
    await server.addStream(['earshot.products']);
    await send(natsTarget(server.server, { format }), [{}]);
    const [{ contentType = '', data } = {}] = await server.messages();
    expect(contentType).toBe('application/cloudevents+json');
    const message = { headers: { 'content-type': contentType }, body: data };
    expectEvent(HTTP.toEvent(message), 'internal.earshot.product.created');
  });

  it('has a constant source without a public URL', async () => {
    const urls = { ...messageUrls, receiver: undefined };
    const [packet] = await published([{}], { format }, urls);
    const contentType = 'application/cloudevents+json';
    expect(packet?.properties).toMatchObject({ contentType });
    expect(JSON.parse(String(packet?.payload)).source).toBe('urn:earshot:receiver');
  });
});

const squareText = "geography'SRID=4326;POLYGON ((10 45, 11 45, 11 46, 10 46, 10 45))'";
const square = [
  [10, 45],
  [11, 45],
  [11, 46],
  [10, 46],
  [10, 45],
];
const id = '8f1c53a6-5d0e-4e55-9f3a-2c1f3d7a9b10';
const sample: SinkDocument = {
  ...{ ...sinkDocument, productId: id },
  value: {
    Name: 'S2A_X.SAFE',
    ContentDate: { Start: '2026-05-02T10:30:21.024Z', End: '2026-05-02T10:30:25.5Z' },
    Footprint: squareText,
  },
};

/** Delivers documents to a target. */
async function send(
  target: SinkTarget,
  items: readonly Partial<SinkDocument>[],
  urls = messageUrls,
): Promise<void> {
  // The signature of a webhook is only valid for some minutes.
  const nowUs = () => (target.kind === 'webhook' ? Date.now() * 1_000 : 1_795_000_000_000_000);
  const context = { nowUs, urls } as OpenContext;
  const { deliver, close } = openTarget({ name: 'bus', timeoutMs: 5_000, target }, context);
  onTestFinished(close);
  for (const item of items) {
    const answer = await deliver({ ...sample, ...item }, AbortSignal.timeout(5_000));
    expect(answer).toEqual({ kind: 'acknowledged' });
  }
}

/** Publishes documents to a simulated broker; returns the packets. */
async function published(
  items: readonly Partial<SinkDocument>[],
  fields: Parameters<typeof mqttTarget>[1],
  urls = messageUrls,
) {
  const broker = await startBroker();
  await send(mqttTarget(broker.url, fields), items, urls);
  return broker.published;
}

async function messages(
  items: readonly Partial<SinkDocument>[],
  fields: Parameters<typeof mqttTarget>[1] = {},
) {
  const packets = await published(items, { format: 'wis2', ...fields });
  return packets.map(({ payload, properties }) => {
    expect(properties?.contentType).toBe('application/geo+json');
    expect(Buffer.byteLength(payload)).toBeLessThanOrEqual(8_192);
    return JSON.parse(String(payload));
  });
}

const record = (fields: object) => ({ value: { ...sample.value, ...fields } });

describe('a WIS2 Notification Message', () => {
  // docs/sinks.md shows the whole message, which a test publishes.
  it('has an id, and a link with the relation of the event', async () => {
    const made = await messages([
      {},
      { id: 'n_2_b', event: 'modified' },
      { event: 'deleted' },
      { event: 'restored' },
    ]);
    const rels = made.map(({ links }) => links[0].rel);
    expect(rels).toEqual(['canonical', 'update', 'deletion', 'update']);
    const [first, second] = made;
    // Version 5 and variant of RFC 9562.
    expect(first.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(first.geometry).toEqual({ type: 'Polygon', coordinates: [square] });
    expect(second.id).not.toBe(first.id);
    expect(second.properties.data_id).toBe(first.properties.data_id);
  });

  it('has the same id in a repeat, and another one from another receiver', async () => {
    const [[one], [repeat]] = [await messages([{}]), await messages([{}])];
    expect(repeat.id).toBe(one.id);
    const urls = { ...messageUrls, receiver: 'https://other.example.org' };
    const [other] = await published([{}], { format: 'wis2' }, urls);
    expect(JSON.parse(String(other?.payload)).id).not.toBe(one.id);
  });

  it('has no geometry when the footprint is missing, crosses the antimeridian, or is too large', async () => {
    const polygon = (points: readonly (readonly number[])[]) =>
      `geography'SRID=4326;POLYGON ((${points.map((point) => point.join(' ')).join(', ')}))'`;
    const circle = Array.from({ length: 501 }, (_, i) => [
      20 + Math.cos((i / 250) * Math.PI),
      20 + Math.sin((i / 250) * Math.PI),
    ]);
    const multi = polygon(square).replace('POLYGON ((', 'MULTIPOLYGON (((').replace('))', ')))');
    const footprints: [text: string, expected: string | null][] = [
      ["geography'SRID=4326;POLYGON ((179 0, -179 0, -179 1, 179 1, 179 0))'", null],
      [polygon(circle), null],
      ["geography'SRID=4326;MULTIPOINT ((1 2), (3 4))'", null],
      ['LINESTRING (1 2, 3 4)', null],
      ['nonsense', null],
      ["geography'SRID=4326;POLYGON ((1 1, 2 2, 1 1))'", null],
      ["geography'SRID=4326;POINT (1 2)'", 'Point'],
      [multi, 'Polygon'],
    ];
    const made = await messages([
      { value: null },
      record({ Footprint: polygon([]), GeoFootprint: { type: 'MultiPolygon', coordinates: [[]] } }),
      ...footprints.map(([Footprint]) => record({ Footprint })),
    ]);
    const expected = [null, null, ...footprints.map(([, type]) => type)];
    expect(made.map(({ geometry }) => geometry?.type ?? null)).toEqual(expected);
    expect(made[0].properties).toMatchObject({ datetime: null });
  });

  it('has one time when the record has one, and an id without a name', async () => {
    const at = '2026-05-02T10:30:21.024Z';
    const made = await messages([
      record({ ContentDate: { Start: at, End: at } }),
      record({ ContentDate: { End: at } }),
      { productName: null },
    ]);
    for (const { properties } of made.slice(0, 2)) {
      expect(properties.datetime).toBe('2026-05-02T10:30:21.024000Z');
      expect(properties).not.toHaveProperty('start_datetime');
    }
    expect(made[2].properties.data_id).toBe(id);
  });
});
