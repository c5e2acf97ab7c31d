/** Generates products from the table of collections, and their later changes. */
import { attributeKindOf } from '../../filter/fields.ts';
import { createRandom, type Random } from '../clock.ts';
import { type Collection, collections, type ProductType, type Scene } from './collections.ts';
import {
  type CatalogueProduct,
  correctedChecksums,
  drawChecksum,
  drawTimestamp,
  toTimestamp,
} from './record.ts';
import {
  groundPoint,
  isLand,
  type Pass,
  passBefore,
  periodMs,
  swathRing,
  tileAt,
  tileRing,
  toFootprint,
} from './track.ts';

/** A newly published product, with every field. */
export type PublishedProduct = ReturnType<typeof assembleRecord>;

export type ProductGenerator = ReturnType<typeof createProductGenerator>;

/** Documented causes of deletion, and one that only real answers contain. */
const deletionCauses = [
  'Duplicated product',
  ...['Missing checksum', 'Corrupted product', 'Obsolete product', 'Other', 'Reprocessed product'],
] as const;

/** Fields that a deleted product keeps, in the order of the documented bodies. */
const keptFields = [
  ...['@odata.mediaContentType', 'Id', 'Name', 'ContentType', 'ContentLength', 'OriginDate'],
  ...['Checksum', 'Footprint', 'GeoFootprint', 'ContentDate', 'Attributes'],
];

/** Creates a generator. `seed` is a 32-bit integer. All times are ms since 1970, truncated. */
export function createProductGenerator({ seed }: { seed: number }) {
  const random = createRandom(seed);
  const changes = createRandom(~seed);
  return {
    /**
     * Generates a product published at a time, from 2018 on. Equal seeds and sequences of times give equal
     * records, regardless of modifications and deletions in between.
     */
    next: (publicationMs: number): PublishedProduct => {
      const [collection, type] = drawType(random);
      const scene = drawScene(random, collection, type, Math.floor(publicationMs));
      return assembleRecord(collection, scene);
    },
    /** Returns the product with corrected checksums: the first ones can be wrong (facts, catalogue 2). */
    modified: <Product extends CatalogueProduct>(product: Product, atMs: number): Product => ({
      ...product,
      ...correctedChecksums(product, Math.floor(atMs), changes),
      ModificationDate: drawTimestamp(changes, Math.floor(atMs)),
    }),
    /** Returns the record of the deleted product. The cause is drawn by default. */
    deleted: (product: CatalogueProduct, atMs: number, cause?: string) => ({
      '@odata.context': '$metadata#DeletedProducts(Attributes())/$entity',
      ...Object.fromEntries(
        keptFields.filter((field) => field in product).map((field) => [field, product[field]]),
      ),
      // Repeated for the type check.
      ...{ Id: product.Id, Name: product.Name },
      DeletionDate: drawTimestamp(changes, Math.floor(atMs)),
      DeletionCause: cause ?? changes.pick(deletionCauses),
    }),
  };
}

const dayMs = 86_400_000;
const mediaType = 'application/octet-stream';
const serviceUrl = 'https://catalogue.dataspace.copernicus.eu/odata/v1';

const types = collections.flatMap((collection) =>
  collection.types.map((type) => [collection, type] as const),
);
const weightSum = types.reduce((sum, [, { weight }]) => sum + weight, 0);

function drawType(random: Random): readonly [Collection, ProductType] {
  let left = random.next() * weightSum;
  const found = types.find(([, { weight }]) => {
    left -= weight;
    return left < 0;
  });
  return found ?? [collections[0], collections[0].types[0]];
}

/** Number of attempts to find land on one orbit, and on all. */
const orbitTries = 12;
const triesMax = 60;

/** Draws time and place of sensing, and the times of processing and delivery to the catalogue. */
function drawScene(
  random: Random,
  { satellites }: Collection,
  type: ProductType,
  publicationMs: number,
): Scene {
  const originMs = publicationMs - random.integer(90_000, 360_000);
  const processedMs = originMs - random.integer(240_000, 540_000);
  const [first, ...others] = satellites;
  const isLaunched = (one: typeof first) =>
    one.reference.startMs - one.reference.orbit * periodMs(one) <= publicationMs;
  const satellite = random.pick([first, ...others.filter(isLaunched)]);
  const beforeMs = publicationMs - random.integer(...type.delayMs);
  for (let tries = 1; ; tries += 1) {
    // An orbit over an ocean has no tiles, so then an earlier one.
    const orbitsBack = Math.floor(tries / orbitTries);
    const argument = frameStart(
      type,
      random.between(...random.pick(type.arcs)),
      periodMs(satellite),
    );
    const pass = passBefore(satellite, argument, beforeMs - orbitsBack * periodMs(satellite));
    const times = { endMs: pass.startMs + type.durationMs, processedMs, originMs, publicationMs };
    const scene = { ...pass, ...times, type, random, tile: '' };
    if (type.footprint === null) return { ...scene, ...wholeDay(scene) };
    if (type.footprint === 'swath') return scene;
    const acrossKm = random.between(type.swath.leftKm, type.swath.rightKm);
    const point = groundPoint(satellite, pass.startMs, acrossKm);
    if (!isLand(point) && tries < triesMax) continue;
    const startMs = datatakeStart(pass);
    return { ...scene, startMs, endMs: startMs, tile: tileAt(point) };
  }
}

/** Tiles have the start of their data take, here at fixed positions of the orbit, at a whole second plus 24 ms. */
function datatakeStart({ satellite, nodeMs, startMs }: Pass): number {
  const spacingMs = periodMs(satellite) / 12;
  const number = Math.floor((startMs - nodeMs) / spacingMs);
  return Math.floor((nodeMs + number * spacingMs) / 1_000) * 1_000 + 24;
}

function frameStart({ frameSeconds }: ProductType, degrees: number, period: number): number {
  if (frameSeconds === undefined) return degrees;
  const frameDegrees = (frameSeconds * 360_000) / period;
  return Math.round(degrees / frameDegrees) * frameDegrees;
}

/** Returns the validity of a daily file: an hour before the day, minus the 18 leap seconds of GPS time. */
function wholeDay({ startMs, type }: Pick<Scene, 'startMs' | 'type'>) {
  const fromMs = Math.floor(startMs / dayMs) * dayMs - 3_618_000;
  return { startMs: fromMs, endMs: fromMs + type.durationMs };
}

/** Creates the record of a product, with keys in the catalogue's order. */
function assembleRecord({ name, attributes, ...collection }: Collection, scene: Scene) {
  const { startMs, endMs, originMs, publicationMs, type, random } = scene;
  const Id: string = random.uuid();
  const Name = name(scene);
  const day = new Date(startMs).toISOString().slice(0, 10).replaceAll('-', '/');
  const S3Path = `/eodata/${collection.folder}/${type.productType}/${day}/${Name}`;
  const ContentLength = random.integer(...type.bytes);
  // Computed within seconds after publication.
  const Checksum = [
    drawChecksum(random, 'MD5', 32, publicationMs + random.integer(500, 6_000)),
    drawChecksum(random, 'BLAKE3', 64, publicationMs + random.integer(6_000, 10_000)),
  ];
  const PublicationDate = drawTimestamp(random, publicationMs);
  const ContentDate = { Start: toTimestamp(startMs), End: toTimestamp(endMs) };
  const dates = { beginningDateTime: ContentDate.Start, endingDateTime: ContentDate.End };
  const footprint = footprintOf(scene, collection.decimals);
  const product = `${serviceUrl}/Products(${Id})`;
  const extracted = { FormatType: 'Extracted', DownloadLink: `${product}/$value` };
  const never = '9999-12-31T23:59:59.999999Z';
  return {
    '@odata.mediaContentType': mediaType,
    ...{ Id, Name, ContentType: mediaType, ContentLength, OriginDate: toTimestamp(originMs) },
    ...{ PublicationDate, ModificationDate: PublicationDate, Online: true },
    EvictionDate: type.keptDays ? toTimestamp(publicationMs + type.keptDays * dayMs) : never,
    ...{ S3Path, Checksum, ContentDate },
    Footprint: footprint?.text ?? null,
    GeoFootprint: footprint?.geometry ?? null,
    Attributes: Object.entries({ ...attributes(scene), ...dates }).map(toAttribute),
    Assets: type.quicklook ? [quicklook(random.uuid(), S3Path)] : [],
    Locations: [
      { ...extracted, ContentLength, Checksum, S3Path },
      ...(type.archive ? [archiveOf(`${product}/$zip`, ContentLength, scene)] : []),
    ],
  };
}

function footprintOf({ satellite, startMs, endMs, tile, type }: Scene, decimals: number) {
  const { footprint, swath, seen: [from, to] = [0, 1] } = type;
  if (footprint === null) return null;
  if (footprint === 'tile') return toFootprint(tileRing(tile), decimals);
  const at = (share: number) => startMs + share * (endMs - startMs);
  return toFootprint(swathRing(satellite, [at(from), at(to)], swath), decimals);
}

/** The default type is for beginningDateTime and endingDateTime, which the published list of attributes lacks. */
function toAttribute([Name, Value]: [string, string | number | boolean]) {
  const ValueType = attributeKindOf(Name) ?? 'DateTimeOffset';
  return { '@odata.type': `#OData.CSC.${ValueType}Attribute`, Name, Value, ValueType };
}

function quicklook(Id: string, S3Path: string) {
  const DownloadLink = `${serviceUrl}/Assets(${Id})/$value`;
  return { Type: 'QUICKLOOK', Id, DownloadLink, S3Path };
}

/** The archive is smaller, has its own checksum, and is kept for 30 days. */
function archiveOf(DownloadLink: string, bytes: number, { random, publicationMs }: Scene) {
  return {
    ...{ FormatType: 'Compressed', DownloadLink },
    ContentLength: Math.round(bytes * random.between(0.5, 0.65)),
    Checksum: [drawChecksum(random, 'MD5', 32, publicationMs - 80_000)],
    EvictionDate: drawTimestamp(random, publicationMs + 30 * dayMs),
  };
}
