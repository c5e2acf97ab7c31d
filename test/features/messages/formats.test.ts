/** STAC items, CloudEvents, read by the SDK of the CloudEvents project, and WIS2 Notification Messages. */
import { existsSync } from 'node:fs';
import { type CloudEvent, HTTP } from 'cloudevents';
import { describe, expect, it } from 'vitest';
import type { NotificationDocument } from '../../../src/features/messages/document.ts';
import {
  type FormatName,
  formats,
  type MessageSettings,
  type MessageUrls,
  messageWriter,
} from '../../../src/features/messages/formats.ts';
import { toStacItem } from '../../../src/features/stac/item.ts';
import { messageUrls } from '../sinks/sink-definition.ts';
import { sinkDocument } from '../sinks/sink-items.ts';
import { schemaFolder, validateStac } from '../stac/schemas.ts';

const squareText = "geography'SRID=4326;POLYGON ((10 45, 11 45, 11 46, 10 46, 10 45))'";
const square = [
  [10, 45],
  [11, 45],
  [11, 46],
  [10, 46],
  [10, 45],
];
const id = '8f1c53a6-5d0e-4e55-9f3a-2c1f3d7a9b10';
const sample: NotificationDocument = {
  ...{ ...sinkDocument, productId: id },
  value: {
    Name: 'S2A_X.SAFE',
    ContentDate: { Start: '2026-05-02T10:30:21.024Z', End: '2026-05-02T10:30:25.5Z' },
    Footprint: squareText,
  },
};

/** Writes the sample with these fields in a format. */
const written = async (
  format: FormatName,
  fields: Partial<NotificationDocument>,
  settings: Partial<MessageSettings & { urls: MessageUrls }> = {},
) => {
  const { urls = messageUrls, ...rest } = settings;
  const message = { format, stacIds: 'earshot', ...rest } as const;
  const write = messageWriter(message, { urls, nowUs: () => 1_795_000_000_000_000 });
  return (await write({ ...sample, ...fields })).text;
};

const read = (body: string) =>
  HTTP.toEvent({
    headers: { 'content-type': formats.cloudevents.mediaType },
    body,
  }) as CloudEvent<Record<string, unknown>>;

const attributes = { productType: 'S2MSI2A', platformShortName: 'SENTINEL-2' };
const scene = {
  productName: 'S2A_MSIL2A_20260502T103021_N0511_R108_T31UFR_20260502T110008.SAFE',
  value: {
    ...sample.value,
    PublicationDate: '2026-05-02T11:10:00Z',
    S3Path: '/eodata/Sentinel-2/one.SAFE',
    Attributes: Object.entries(attributes).map(([Name, Value]) => ({
      ...{ Name, Value, ValueType: 'String' },
    })),
  },
} satisfies Partial<NotificationDocument>;
const sceneId = 'S2A_MSIL2A_20260502T103021_N0511_R108_T31UFR_20260502T110008';
const deletion = {
  event: 'deleted',
  productName: scene.productName,
  value: { DeletionDate: '2026-06-01T00:00:00.000Z', DeletionCause: 'Duplicated product' },
};

describe('a STAC item', () => {
  it('is the one of /stac, with its ids or those of the STAC API of the catalogue', async () => {
    const own = JSON.parse(await written('stac', scene));
    const record = { ...scene.value, Id: id, Name: scene.productName };
    const row = {
      productId: id,
      s3Path: scene.value.S3Path,
      deletionDateUs: null,
      receivedAtUs: 0,
    };
    const { catalogue: catalogueUrl, base } = messageUrls;
    expect(own).toEqual(
      JSON.parse(JSON.stringify(toStacItem({ row, record }, { catalogueUrl, base }))),
    );
    expect(own).toMatchObject({ id, collection: 'SENTINEL-2.S2MSI2A' });
    const there = JSON.parse(await written('stac', scene, { stacIds: 'catalogue' }));
    expect(there).toMatchObject({ id: sceneId, collection: 'sentinel-2-l2a' });
    const collection = 'https://stac.dataspace.copernicus.eu/v1/collections/sentinel-2-l2a';
    expect(there.links).toContainEqual(
      expect.objectContaining({ rel: 'canonical', href: `${collection}/items/${sceneId}` }),
    );
    expect(there.links.filter(({ rel }: { rel: string }) => rel === 'collection')).toEqual([
      { rel: 'collection', href: collection, type: 'application/json' },
    ]);
  });

  it('of a deletion is a reference with its time and cause; without a record, with the ids', async () => {
    const reference = JSON.parse(await written('stac', deletion, { stacIds: 'catalogue' }));
    expect(reference).toMatchObject({
      ...{ type: 'Feature', id: sceneId, collection: 'sentinel-2-l2a', geometry: null, assets: {} },
      properties: {
        unpublished: '2026-06-01T00:00:00.000Z',
        deletion_cause: 'Duplicated product',
      },
    });
    const { properties } = JSON.parse(await written('stac', { value: null }));
    expect(properties).toEqual({ datetime: sample.receivedAt, title: sample.productName });
  });

  it('is valid against the published schemas of STAC, also as a reference', async (context) => {
    if (!existsSync(schemaFolder)) context.skip('the folder ../shared/fixtures is not there');
    const settings = [{ stacIds: 'earshot' }, { stacIds: 'catalogue' }] as const;
    const all = await Promise.all(
      [scene, deletion, { value: null }].flatMap((one) =>
        settings.map((ids) => written('stac', one, ids)),
      ),
    );
    // The schema of the extension `timestamps` is not in the folder.
    const items = all.map((text) => {
      const { stac_extensions: names, ...item } = JSON.parse(text);
      const known = names.filter((name: string) => !name.includes('/timestamps/'));
      return { ...item, stac_extensions: known };
    });
    expect(await validateStac(items)).toEqual({ faults: [], checked: 6 });
  });
});

describe('a CloudEvent', () => {
  it.each([
    ['created', 'create'],
    ['modified', 'replace'],
    ['deleted', 'delete'],
    ['restored', 'replace'],
  ])(
    'of the event %s has the type of OGC, the item as data, and attributes for routing',
    async (event, operation) => {
      const fields = { ...scene, event };
      const received = read(await written('cloudevents', fields, { stacIds: 'catalogue' }));
      expect(received.validate()).toBe(true);
      expect(received).toMatchObject({
        ...{ specversion: '1.0', id: sample.id, source: 'https://earshot.example.org' },
        type: `org.ogc.api.collection.item.${operation}`,
        ...{ subject: sceneId, datacontenttype: 'application/geo+json' },
        ...{ collection: 'sentinel-2-l2a', mission: 'SENTINEL-2', producttype: 'S2MSI2A' },
      });
      expect(received.data).toEqual(
        JSON.parse(await written('stac', fields, { stacIds: 'catalogue' })),
      );
    },
  );

  it.each([null, '2026-11-20T06:00:00.123000Z'])(
    'of a document has the attributes of the document, also with the date %s',
    async (notificationDate) => {
      const fields = { event: 'modified', notificationDate };
      const event = read(await written('cloudevents-document', fields));
      expect(event.validate()).toBe(true);
      expect(event).toMatchObject({
        ...{ specversion: '1.0', id: sample.id, source: 'https://earshot.example.org' },
        ...{ type: 'internal.earshot.product.modified', subject: id },
        ...{ datacontenttype: 'application/json', data: { ...sample, ...fields } },
      });
      expect(Date.parse(event.time ?? '')).toBe(Date.parse(notificationDate ?? sample.receivedAt));
    },
  );

  it('has a constant source without a public URL', async () => {
    const urls = { ...messageUrls, receiver: undefined };
    expect(read(await written('cloudevents', {}, { urls })).source).toBe('urn:earshot:receiver');
  });
});

/** The message as JSON, within its maximum size. */
const message = async (fields: Partial<NotificationDocument>, urls = messageUrls) => {
  const text = await written('wis2', fields, { urls });
  expect(Buffer.byteLength(text)).toBeLessThanOrEqual(8_192);
  return JSON.parse(text);
};

const record = (fields: object) => ({ value: { ...sample.value, ...fields } });

describe('a WIS2 Notification Message', () => {
  // docs/sinks.md shows the whole message, which a test publishes.
  it('has an id, and a link with the relation of the event', async () => {
    const relOf = async (event: string) => (await message({ event })).links[0].rel;
    const rels = await Promise.all(['created', 'modified', 'deleted', 'restored'].map(relOf));
    expect(rels).toEqual(['canonical', 'update', 'deletion', 'update']);
    const [first, second] = [await message({}), await message({ id: 'n_2_b' })];
    // Version 5 and variant of RFC 9562.
    expect(first.id).toMatch(/^[\da-f]{8}-[\da-f]{4}-5[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/);
    expect(first.geometry).toEqual({ type: 'Polygon', coordinates: [square] });
    expect(second.id).not.toBe(first.id);
    expect(second.properties.data_id).toBe(first.properties.data_id);
  });

  it('has the same id in a repeat, and another one from another receiver', async () => {
    const { id: first } = await message({});
    expect((await message({})).id).toBe(first);
    const urls = { ...messageUrls, receiver: 'https://other.example.org' };
    expect((await message({}, urls)).id).not.toBe(first);
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
    const made = await Promise.all(
      [
        { value: null },
        record({
          Footprint: polygon([]),
          GeoFootprint: { type: 'MultiPolygon', coordinates: [[]] },
        }),
        ...footprints.map(([Footprint]) => record({ Footprint })),
      ].map((fields) => message(fields)),
    );
    const expected = [null, null, ...footprints.map(([, type]) => type)];
    expect(made.map(({ geometry }) => geometry?.type ?? null)).toEqual(expected);
    expect(made[0].properties).toMatchObject({ datetime: null });
  });

  it('has one time when the record has one, and an id without a name', async () => {
    const at = '2026-05-02T10:30:21.024Z';
    for (const ContentDate of [{ Start: at, End: at }, { End: at }]) {
      const { properties } = await message(record({ ContentDate }));
      expect(properties.datetime).toBe('2026-05-02T10:30:21.024000Z');
      expect(properties).not.toHaveProperty('start_datetime');
    }
    expect((await message({ productName: null })).properties.data_id).toBe(id);
  });
});
