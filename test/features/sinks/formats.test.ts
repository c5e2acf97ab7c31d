/** CloudEvents, read by the SDK of the CloudEvents project, and WIS2 Notification Messages. */
import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import type { SinkDocument } from '../../../src/features/sinks/document.ts';
import { type FormatName, formats } from '../../../src/features/sinks/formats.ts';
import { startHook } from './hook-server.ts';
import { openTestTarget } from './sink-context.ts';
import { messageUrls, webhookTarget } from './sink-definition.ts';
import { sinkDocument } from './sink-items.ts';

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

/** Writes the sample with these fields in a format. */
const written = (format: FormatName, fields: Partial<SinkDocument>, urls = messageUrls) =>
  formats[format].write({ ...sample, ...fields }, { urls, nowUs: 1_795_000_000_000_000 });

describe('a CloudEvent', () => {
  it.each([null, '2026-11-20T06:00:00.123000Z'])(
    'has the attributes of the document, also with the date %s',
    (notificationDate) => {
      const headers = { 'content-type': formats.cloudevents.mediaType };
      const body = written('cloudevents', { event: 'modified', notificationDate });
      const event = HTTP.toEvent({ headers, body }) as CloudEvent<unknown>;
      expect(event.validate()).toBe(true);
      expect(event).toMatchObject({
        ...{ specversion: '1.0', id: sample.id, source: 'https://earshot.example.org' },
        ...{ type: 'internal.earshot.product.modified', subject: id },
        ...{
          datacontenttype: 'application/json',
          data: { ...sample, event: 'modified', notificationDate },
        },
      });
      expect(Date.parse(event.time ?? '')).toBe(Date.parse(notificationDate ?? sample.receivedAt));
    },
  );

  it('has a constant source without a public URL', () => {
    const text = written('cloudevents', {}, { ...messageUrls, receiver: undefined });
    expect(JSON.parse(text).source).toBe('urn:earshot:receiver');
  });

  it('is the signed body of a webhook', async () => {
    const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
    const hook = await startHook();
    const target = webhookTarget(hook.url, { secret, format: 'cloudevents' });
    const answer = await openTestTarget(target).deliver(sample, AbortSignal.timeout(5_000));
    expect(answer).toEqual({ kind: 'acknowledged' });
    const { headers = {}, body = '' } = hook.received[0] ?? {};
    expect(headers['content-type']).toBe('application/cloudevents+json');
    new Webhook(secret).verify(body, headers as Record<string, string>);
    expect(body).toBe(written('cloudevents', {}));
  });
});

/** The message as JSON, within its maximum size. */
const message = (fields: Partial<SinkDocument>, urls = messageUrls) => {
  const text = written('wis2', fields, urls);
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_192);
  return JSON.parse(text);
};

const record = (fields: object) => ({ value: { ...sample.value, ...fields } });

describe('a WIS2 Notification Message', () => {
  // docs/sinks.md shows the whole message, which a test publishes.
  it('has an id, and a link with the relation of the event', () => {
    const relOf = (event: string) => message({ event }).links[0].rel;
    const rels = ['created', 'modified', 'deleted', 'restored'].map(relOf);
    expect(rels).toEqual(['canonical', 'update', 'deletion', 'update']);
    const [first, second] = [message({}), message({ id: 'n_2_b' })];
    // Version 5 and variant of RFC 9562.
    expect(first.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(first.geometry).toEqual({ type: 'Polygon', coordinates: [square] });
    expect(second.id).not.toBe(first.id);
    expect(second.properties.data_id).toBe(first.properties.data_id);
  });

  it('has the same id in a repeat, and another one from another receiver', () => {
    const { id: first } = message({});
    expect(message({}).id).toBe(first);
    const urls = { ...messageUrls, receiver: 'https://other.example.org' };
    expect(message({}, urls).id).not.toBe(first);
  });

  it('has no geometry when the footprint is missing, crosses the antimeridian, or is too large', () => {
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
    const made = [
      { value: null },
      record({ Footprint: polygon([]), GeoFootprint: { type: 'MultiPolygon', coordinates: [[]] } }),
      ...footprints.map(([Footprint]) => record({ Footprint })),
    ].map((fields) => message(fields));
    const expected = [null, null, ...footprints.map(([, type]) => type)];
    expect(made.map(({ geometry }) => geometry?.type ?? null)).toEqual(expected);
    expect(made[0].properties).toMatchObject({ datetime: null });
  });

  it('has one time when the record has one, and an id without a name', () => {
    const at = '2026-05-02T10:30:21.024Z';
    for (const ContentDate of [{ Start: at, End: at }, { End: at }]) {
      const { properties } = message(record({ ContentDate }));
      expect(properties.datetime).toBe('2026-05-02T10:30:21.024000Z');
      expect(properties).not.toHaveProperty('start_datetime');
    }
    expect(message({ productName: null }).properties.data_id).toBe(id);
  });
});
