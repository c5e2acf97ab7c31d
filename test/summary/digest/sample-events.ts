/** Made-up notifications with their products, for tests of digests. */
import type { ProductRow } from '../../../src/domain/products.ts';
import type { DigestScope } from '../../../src/domain/summaries.ts';
import {
  createDigestCount,
  type DigestEvent,
  type DigestFacts,
} from '../../../src/summary/digest/digest-facts.ts';
import type { Place } from '../../../src/summary/places/globe.ts';

export const minuteUs = 60_000_000;
export const dayUs = 1440 * minuteUs;

/** 20 May 2024 00:00 UTC. */
export const midnightUs = Date.UTC(2024, 4, 20) * 1000;

export const day: DigestScope = {
  fromUs: midnightUs,
  untilUs: midnightUs + dayUs,
  subscription: 'alps',
  collection: null,
  filter: null,
  area: null,
};

/** A Sentinel-2 tile, sensed at 10:15, published at 14:15, and received a minute later. */
const tile: ProductRow = {
  position: 1,
  productId: 'c3b5a6f0-0000-4000-8000-000000000001',
  productName: 'S2B_MSIL2A_20240520T101559_N0510_R065_T32TPT_20240520T141500.SAFE',
  collection: 'SENTINEL-2',
  platform: 'SENTINEL-2B',
  productType: 'S2MSI2A',
  processingLevel: 'S2MSI2A',
  sensingStartUs: midnightUs + 615 * minuteUs,
  sensingEndUs: midnightUs + 615 * minuteUs,
  publicationUs: midnightUs + 855 * minuteUs,
  modificationUs: null,
  sizeBytes: 1_100_000_000,
  online: true,
  cloudCoverPercent: 12.3,
  orbitNumber: 37_600,
  relativeOrbitNumber: 65,
  orbitDirection: 'DESCENDING',
  tile: '32TPT',
  processingBaseline: '05.10',
  receivedAtUs: midnightUs + 856 * minuteUs,
  deletionUs: null,
  deletionCause: null,
  s3Path: null,
};

/** A place in these countries and seas, with decreasing shares. */
export function placeIn(countries: readonly string[], seas: readonly string[] = []): Place {
  const shares = (names: readonly string[]) =>
    names.map((name, index) => ({ name, share: 1 / (index + 2) }));
  return {
    countries: shares(countries),
    seas: shares(seas),
    near: [],
    areaSquareKm: 12_056,
    centre: { longitude: 11, latitude: 47 },
  };
}

/** A notification; `row` and `event` override the fields of a new tile in Austria. */
export function notificationOf(
  row: Partial<ProductRow> = {},
  event: Partial<DigestEvent> = {},
): DigestEvent {
  const whole = { ...tile, ...row };
  const { productId, productName, receivedAtUs } = whole;
  return {
    event: 'created',
    product: { row: whole, record: { Id: productId, Name: productName } },
    productId,
    productName,
    receivedAtUs,
    place: placeIn(['Austria']),
    ...event,
  };
}

export function factsOf(
  events: readonly DigestEvent[],
  scope: Partial<DigestScope> = {},
): DigestFacts {
  const count = createDigestCount();
  for (const event of events) count.add(event);
  return count.facts({ ...day, ...scope });
}

/** Events with ids of their own: `many(3, (n) => …)`. */
export function many(
  count: number,
  of: (index: number) => { row?: Partial<ProductRow>; event?: Partial<DigestEvent> } = () => ({}),
  prefix = 'p',
): DigestEvent[] {
  return Array.from({ length: count }, (_, index) => {
    const { row, event } = of(index);
    return notificationOf({ productId: `${prefix}-${index}`, ...row }, event);
  });
}
