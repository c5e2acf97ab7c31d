/** Products as the catalogue describes them, and a data directory that received their notifications. */
import type { Delivery } from '../../../src/core/terms/ports.ts';
import { createContext, delivery } from '../../helpers/filled-store.ts';

/** Properties of a product that a test sets; the others have defaults. */
export interface Sample {
  id: string;
  name: string;
  sensed?: string;
  published?: string;
  /** Footprint as well-known text. */
  area?: string;
  cloud?: number;
  attributes?: Record<string, string>;
  event?: 'created' | 'deleted';
  fields?: Record<string, unknown>;
}

/** A GUID that ends in these digits. */
export const guid = (digits: string) => `00000000-0000-4000-8000-${digits.padStart(12, '0')}`;

const box = (west: number, south: number) =>
  `POLYGON ((${west} ${south}, ${west + 1} ${south}, ${west + 1} ${south + 1}, ${west} ${south + 1}, ${west} ${south}))`;

/** Two of Sentinel-2, one of Sentinel-1 across the antimeridian, one with few fields, one deleted. */
export const samples: readonly Sample[] = [
  {
    id: guid('1'),
    name: 'S2A_MSIL2A_20260501T103021_N0511_R108_T31UFR_20260501T140000.SAFE',
    sensed: '2026-05-01T10:30:21Z',
    published: '2026-05-01T15:00:00Z',
    area: box(5, 51),
    cloud: 12.5,
    attributes: sentinel('2', 'A', 'S2MSI2A', '31UFR'),
    fields: { S3Path: '/eodata/Sentinel-2/one.SAFE' },
  },
  {
    id: guid('2'),
    name: 'S2B_MSIL1C_20260430T103021_N0511_R108_T32TQM_20260430T120000.SAFE',
    sensed: '2026-04-30T10:30:21Z',
    published: '2026-04-30T15:00:00Z',
    area: box(11, 45),
    cloud: 80,
    attributes: sentinel('2', 'B', 'S2MSI1C', '32TQM'),
  },
  {
    id: guid('3'),
    name: 'S1A_IW_GRDH_1SDV_20260502T050000_20260502T050025_060000_077000_ABCD.SAFE',
    sensed: '2026-05-02T05:00:00Z',
    published: '2026-05-02T08:00:00Z',
    area: box(-180, 10),
    // An attribute that is no column of the index.
    attributes: { ...sentinel('1', 'A', 'IW_GRDH_1S'), timeliness: 'NRT' },
  },
  { id: guid('4'), name: '=odd "one",.SAFE' },
  {
    id: guid('5'),
    name: 'S2A_MSIL2A_20260101T103021_N0511_R108_T31UFR_20260101T140000.SAFE',
    sensed: '2026-01-01T10:30:21Z',
    area: box(5, 51),
    event: 'deleted',
    attributes: sentinel('2', 'A', 'S2MSI2A', '31UFR'),
    fields: { DeletionDate: '2026-05-02T06:00:00Z', DeletionCause: 'Duplicated product' },
  },
];

function sentinel(number: string, serial: string, productType: string, tileId?: string) {
  return {
    platformShortName: `SENTINEL-${number}`,
    platformSerialIdentifier: serial,
    productType,
    ...(tileId === undefined ? {} : { tileId }),
  };
}

/** A product of Sentinel-2; the facts of up to 400 numbers differ. */
export function numberedSample(number: number): Sample {
  const [row = '', column = ''] = [number % 20, Math.floor(number / 20) % 20].map((i) =>
    String.fromCharCode(65 + i),
  );
  return {
    id: guid(String(number)),
    name: `S2B_MSIL2A_20260502T100031_N0511_R022_T32T${row}${column}_20260502T103000.SAFE`,
    sensed: '2026-05-02T10:00:31Z',
    published: '2026-05-02T11:00:00Z',
    area: box(11, 45),
    cloud: number % 100,
    attributes: sentinel('2', 'B', 'S2MSI2A', `32T${row}${column}`),
  };
}

/** The record of a sample, in the catalogue's format. */
export function recordOf(sample: Sample): Record<string, unknown> {
  const { id, name, sensed, published, area, cloud, attributes = {}, fields = {} } = sample;
  const texts = Object.entries(attributes).map(([key, value]) => attribute('String', key, value));
  return {
    Id: id,
    Name: name,
    ContentLength: 1_234_567_890,
    ...(sensed === undefined ? {} : { ContentDate: { Start: sensed, End: sensed } }),
    ...(published === undefined ? {} : { PublicationDate: published }),
    ...(published === undefined ? {} : { ModificationDate: published, Online: true }),
    ...(area === undefined ? {} : { Footprint: `geography'SRID=4326;${area}'` }),
    Attributes: [
      ...texts,
      ...(cloud === undefined ? [] : [attribute('Double', 'cloudCover', cloud)]),
    ],
    ...fields,
  };
}

function attribute(kind: string, name: string, value: unknown) {
  return {
    '@odata.type': `#OData.CSC.${kind}Attribute`,
    Name: name,
    Value: value,
    ValueType: kind,
  };
}

/** The delivery with the notification of a sample. */
export function deliveryOf(sample: Sample): Delivery {
  return delivery({
    SubscriptionEvent: sample.event ?? 'created',
    ProductId: sample.id,
    ProductName: sample.name,
    AckId: `ack-${sample.id}`,
    value: recordOf(sample),
  });
}

/** A data directory that received the notifications of all samples. */
export async function createProductContext(atEnd?: (cleanUp: () => void) => void) {
  const context = createContext(atEnd);
  await context.fill(samples.map(deliveryOf));
  return {
    ...context,
    /** The last digit of each product that a query prints, in its order. */
    async digits(words: readonly string[]): Promise<string> {
      const argv = ['query', 'products', ...words, '--output', 'ids'];
      const { code, out, err } = await context.earshot(argv);
      if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
      return out
        .split('\n')
        .map((id) => id.slice(-1))
        .join('');
    },
  };
}
