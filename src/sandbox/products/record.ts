/** Assembles a published record from what a mission knows of its product. */
import type { Random } from '../random.ts';
import { type AttributeValues, toAttributes } from './attributes.ts';
import type { Checksum, ProductLocation, PublishedProduct } from './catalogue-product.ts';
import type { Footprint } from './footprint.ts';
import { toDayFolder, toTimestamp } from './timestamp.ts';

/** When a product came to be, before it was published. Whole ms since 1970, in this order. */
export interface Timeline {
  readonly processedMs: number;
  readonly originMs: number;
  readonly publicationMs: number;
}

/** A product as its mission describes it. */
export interface ProductDraft {
  readonly name: string;
  /** Path below `/eodata/` down to the product type. */
  readonly folder: string;
  readonly contentLengthBytes: number;
  /** Sensing time, or validity for auxiliary files; whole ms since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Without beginningDateTime and endingDateTime, which follow from the times. */
  readonly attributes: AttributeValues;
  readonly footprint: Footprint | null;
  readonly quicklook: boolean;
  /** Whether the archive is offered beside the folder. */
  readonly compressed: boolean;
  /** Days from publication to eviction; never when absent. */
  readonly keptDays?: number;
}

/** Makes a product of one mission that is published at `timeline.publicationMs`. */
export type ProductSource = (random: Random, timeline: Timeline) => ProductDraft;

const dayMs = 86_400_000;
const minuteMs = 60_000;
const mediaType = 'application/octet-stream';
const serviceUrl = 'https://catalogue.dataspace.copernicus.eu/odata/v1';

/** Draws how long before its publication a product was processed and handed over. */
export function drawTimeline(random: Random, publicationMs: number): Timeline {
  const originMs = publicationMs - random.integer(90_000, 6 * minuteMs);
  return {
    publicationMs,
    originMs,
    processedMs: originMs - random.integer(4 * minuteMs, 9 * minuteMs),
  };
}

/** Writes the record of a product, with the keys in the catalogue's order. */
export function assembleRecord(
  draft: ProductDraft,
  { originMs, publicationMs }: Timeline,
  random: Random,
): PublishedProduct {
  const id = random.uuid();
  const s3Path = `/eodata/${draft.folder}/${toDayFolder(draft.startMs)}/${draft.name}`;
  const checksum = drawChecksums(random, publicationMs);
  const publicationDate = toTimestamp(publicationMs, random.integer(0, 999));
  const content = { Start: toTimestamp(draft.startMs), End: toTimestamp(draft.endMs) };
  const extracted = {
    FormatType: 'Extracted',
    DownloadLink: `${serviceUrl}/Products(${id})/$value`,
    ContentLength: draft.contentLengthBytes,
    Checksum: checksum,
    S3Path: s3Path,
  };
  return {
    '@odata.mediaContentType': mediaType,
    Id: id,
    Name: draft.name,
    ContentType: mediaType,
    ContentLength: draft.contentLengthBytes,
    OriginDate: toTimestamp(originMs),
    PublicationDate: publicationDate,
    ModificationDate: publicationDate,
    Online: true,
    EvictionDate: evictionDate(draft, publicationMs),
    S3Path: s3Path,
    Checksum: checksum,
    ContentDate: content,
    Footprint: draft.footprint?.text ?? null,
    GeoFootprint: draft.footprint?.geometry ?? null,
    Attributes: toAttributes({
      ...draft.attributes,
      beginningDateTime: content.Start,
      endingDateTime: content.End,
    }),
    Assets: draft.quicklook ? [quicklook(random.uuid(), s3Path)] : [],
    Locations: draft.compressed
      ? withCompressed(extracted, id, { originMs, publicationMs }, random)
      : [extracted],
  };
}

function evictionDate({ keptDays }: ProductDraft, publicationMs: number): string {
  if (keptDays === undefined) return '9999-12-31T23:59:59.999999Z';
  return toTimestamp(publicationMs + keptDays * dayMs);
}

/** Both sums of the folder, computed in the seconds after it was published. */
function drawChecksums(random: Random, publicationMs: number): Checksum[] {
  const md5Ms = publicationMs + random.integer(500, 6000);
  const blake3Ms = md5Ms + random.integer(50, 4000);
  return [
    { Value: random.hex(32), Algorithm: 'MD5', ChecksumDate: drawTimestamp(random, md5Ms) },
    { Value: random.hex(64), Algorithm: 'BLAKE3', ChecksumDate: drawTimestamp(random, blake3Ms) },
  ];
}

function drawTimestamp(random: Random, atMs: number): string {
  return toTimestamp(atMs, random.integer(0, 999));
}

function quicklook(id: string, s3Path: string) {
  return {
    Type: 'QUICKLOOK',
    Id: id,
    DownloadLink: `${serviceUrl}/Assets(${id})/$value`,
    S3Path: s3Path,
  };
}

/** Adds the archive: smaller, with a sum of its own, and kept for 30 days. Real records vary the order. */
function withCompressed(
  extracted: ProductLocation & { readonly ContentLength: number },
  productId: string,
  { originMs, publicationMs }: Pick<Timeline, 'originMs' | 'publicationMs'>,
  random: Random,
): ProductLocation[] {
  const archivedMs = publicationMs - random.integer(60_000, 85_000);
  const compressed = {
    FormatType: 'Compressed',
    DownloadLink: `${serviceUrl}/Products(${productId})/$zip`,
    ContentLength: Math.round(extracted.ContentLength * random.between(0.5, 0.65)),
    Checksum: [
      { Value: random.hex(32), Algorithm: 'MD5', ChecksumDate: toTimestamp(originMs - 1500) },
    ],
    EvictionDate: drawTimestamp(random, archivedMs + 30 * dayMs),
  };
  return random.chance(0.5) ? [extracted, compressed] : [compressed, extracted];
}
