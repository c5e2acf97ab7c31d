/** Product records of the catalogue: schema, creation for a new product, and parsing of a file. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { attributeKindOf } from '../../filter/fields.ts';
import type { Random } from '../clock.ts';
import { describeIssues, SandboxConfigurationError } from '../live-settings.ts';
import type { Footprint, FootprintGeometry } from './orbit.ts';

const text = z.string();

/** Fields are optional: old records contain an empty checksum. Algorithms are `MD5` and `BLAKE3`. */
const checksums = z.array(
  z.looseObject({ Value: text, Algorithm: text, ChecksumDate: text }).partial(),
);

/** Fields of every published product. Dates are ISO 8601, UTC, six fractional digits. */
const fields = {
  '@odata.mediaContentType': text,
  /** A GUID. */
  Id: text.min(1),
  Name: text.min(1),
  ContentType: text,
  /** Bytes; may exceed 32 bits. */
  ContentLength: z.number(),
  OriginDate: text,
  PublicationDate: text,
  ModificationDate: text,
  Online: z.boolean(),
  /** `9999-12-31T23:59:59.999999Z` for never; empty in old records. */
  EvictionDate: text,
  S3Path: text,
  Checksum: checksums,
  ContentDate: z.object({ Start: text, End: text }),
  /** `geography'SRID=4326;<WKT>'`; null for auxiliary files. */
  Footprint: text.nullable(),
  /** The same geometry as Footprint in GeoJSON. */
  GeoFootprint: z.looseObject({ type: text, coordinates: z.array(z.unknown()) }).nullable(),
  Attributes: z.array(z.looseObject({ Name: text, Value: z.unknown().optional() })),
  Assets: z.array(z.unknown()),
  /** FormatType is `Extracted` (the folder) or `Compressed` (the archive). */
  Locations: z.array(z.looseObject({ FormatType: text, Checksum: checksums }).partial()),
};

/** Only Id and Name are required, but every field must have the catalogue's type. */
const recordSchema = z.looseObject(fields).partial().extend({ Id: fields.Id, Name: fields.Name });

type DeepReadonly<Value> = Value extends object
  ? { readonly [Key in keyof Value]: DeepReadonly<Value[Key]> }
  : Value;
type Fields = DeepReadonly<z.output<z.ZodObject<typeof fields>>>;
interface UnknownFields {
  readonly [other: string]: unknown;
}

/** A product record of any origin and age: only Id and Name are guaranteed. */
export type CatalogueProduct = DeepReadonly<z.output<typeof recordSchema>>;

/** A newly published product, with every field. */
export type PublishedProduct = Omit<Fields, 'GeoFootprint'> &
  UnknownFields & { readonly GeoFootprint: FootprintGeometry | null };

/** A record of the DeletedProducts entity. */
export type DeletedProduct = Pick<Fields, 'Id' | 'Name'> &
  Partial<Pick<Fields, 'ContentLength' | 'Checksum' | 'Attributes'>> &
  UnknownFields & { readonly DeletionDate: string; readonly DeletionCause: string };

export type Checksum = NonNullable<CatalogueProduct['Checksum']>[number];

/** Values by attribute name, in output order. */
export type AttributeValues = Readonly<Record<string, string | number | boolean>>;

/** Times of a product up to its publication. Whole ms since 1970, ascending. */
export interface Timeline {
  readonly processedMs: number;
  readonly originMs: number;
  readonly publicationMs: number;
}

/** The mission-specific part of a product. */
export interface ProductDraft {
  readonly name: string;
  /** Path below `/eodata/` down to the product type. */
  readonly folder: string;
  readonly contentLengthBytes: number;
  /** Sensing time, or validity for auxiliary files; whole ms since 1970. */
  readonly startMs: number;
  readonly endMs: number;
  /** Without beginningDateTime and endingDateTime, which are derived from the times. */
  readonly attributes: AttributeValues;
  readonly footprint: Footprint | null;
  /** Default: false. */
  readonly quicklook?: boolean;
  /** Offers the archive in addition to the folder (default: false). */
  readonly compressed?: boolean;
  /** Days from publication to eviction; absent: never. */
  readonly keptDays?: number;
}

/** Creates a product of one mission that is published at `timeline.publicationMs`. */
export type ProductSource = (random: Random, timeline: Timeline) => ProductDraft;

const dayMs = 86_400_000;
const minuteMs = 60_000;
const mediaType = 'application/octet-stream';
const serviceUrl = 'https://catalogue.dataspace.copernicus.eu/odata/v1';

/** Draws the times of processing and delivery to the catalogue before a publication. */
export function drawTimeline(random: Random, publicationMs: number): Timeline {
  const originMs = publicationMs - random.integer(90_000, 6 * minuteMs);
  const processedMs = originMs - random.integer(4 * minuteMs, 9 * minuteMs);
  return { publicationMs, originMs, processedMs };
}

/** Creates the record of a product, with keys in the catalogue's order. */
export function assembleRecord(
  draft: ProductDraft,
  timeline: Timeline,
  random: Random,
): PublishedProduct {
  const { originMs, publicationMs } = timeline;
  const id = random.uuid();
  const s3Path = `/eodata/${draft.folder}/${toDayFolder(draft.startMs)}/${draft.name}`;
  const checksum = drawChecksums(random, publicationMs);
  const publicationDate = drawTimestamp(random, publicationMs);
  const content = { Start: toTimestamp(draft.startMs), End: toTimestamp(draft.endMs) };
  const dates = { beginningDateTime: content.Start, endingDateTime: content.End };
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
    EvictionDate:
      draft.keptDays === undefined
        ? '9999-12-31T23:59:59.999999Z'
        : toTimestamp(publicationMs + draft.keptDays * dayMs),
    S3Path: s3Path,
    Checksum: checksum,
    ContentDate: content,
    Footprint: draft.footprint?.text ?? null,
    GeoFootprint: draft.footprint?.geometry ?? null,
    Attributes: Object.entries({ ...draft.attributes, ...dates }).map(toAttribute),
    Assets: draft.quicklook ? [quicklook(random.uuid(), s3Path)] : [],
    Locations: draft.compressed
      ? withCompressed(extracted, `Products(${id})`, timeline, random)
      : [extracted],
  };
}

/** The default type is for beginningDateTime and endingDateTime, which the published list of attributes lacks. */
function toAttribute([name, value]: [string, string | number | boolean]) {
  const type = attributeKindOf(name) ?? 'DateTimeOffset';
  const annotation = { '@odata.type': `#OData.CSC.${type}Attribute` };
  return { ...annotation, Name: name, Value: value, ValueType: type };
}

/** Draws both checksums of the folder, computed within seconds after publication. */
function drawChecksums(random: Random, publicationMs: number) {
  const md5Ms = publicationMs + random.integer(500, 6000);
  const blake3Ms = md5Ms + random.integer(50, 4000);
  return [
    { Value: random.hex(32), Algorithm: 'MD5', ChecksumDate: drawTimestamp(random, md5Ms) },
    { Value: random.hex(64), Algorithm: 'BLAKE3', ChecksumDate: drawTimestamp(random, blake3Ms) },
  ];
}

function quicklook(id: string, s3Path: string) {
  const link = `${serviceUrl}/Assets(${id})/$value`;
  return { Type: 'QUICKLOOK', Id: id, DownloadLink: link, S3Path: s3Path };
}

/** Adds the archive: smaller, with its own checksum, kept for 30 days. The order varies as in real records. */
function withCompressed<Location extends { readonly ContentLength: number }>(
  extracted: Location,
  resource: string,
  { originMs, publicationMs }: Timeline,
  random: Random,
) {
  const archivedMs = publicationMs - random.integer(60_000, 85_000);
  const compressed = {
    FormatType: 'Compressed',
    DownloadLink: `${serviceUrl}/${resource}/$zip`,
    ContentLength: Math.round(extracted.ContentLength * random.between(0.5, 0.65)),
    Checksum: [
      { Value: random.hex(32), Algorithm: 'MD5', ChecksumDate: toTimestamp(originMs - 1500) },
    ],
    EvictionDate: drawTimestamp(random, archivedMs + 30 * dayMs),
  };
  return random.chance(0.5) ? [extracted, compressed] : [compressed, extracted];
}

/**
 * Formats ISO 8601 in UTC with six fractional digits, e.g. `2026-01-01T01:16:00.346278Z`.
 * `atMs` is whole ms since 1970; `microseconds` (0 to 999) are added.
 */
export function toTimestamp(atMs: number, microseconds = 0): string {
  return `${new Date(atMs).toISOString().slice(0, -1)}${String(microseconds).padStart(3, '0')}Z`;
}

/** Formats a timestamp with random microseconds. */
export function drawTimestamp(random: Random, atMs: number): string {
  return toTimestamp(atMs, random.integer(0, 999));
}

/** Formats whole seconds without separators, e.g. `20260101T011600`. */
export function toNameTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
}

/** Formats the folder of a day, e.g. `2026/01/01`. */
function toDayFolder(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '/');
}

/**
 * Reads product records from a JSON Lines file; skips blank lines. Throws SandboxConfigurationError
 * for an unreadable or empty file, and for an invalid record.
 */
export function readProductRecords(file: string): CatalogueProduct[] {
  const records = readText(file)
    .split('\n')
    .flatMap((line, index) => (line.trim() === '' ? [] : [parseRecord(line, file, index + 1)]));
  if (records.length > 0) return records;
  throw new SandboxConfigurationError(
    `${file} contains no product records. Put one JSON object on each line.`,
  );
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '');
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new SandboxConfigurationError(
      `Cannot read the product records in ${file}: ${reason}. Check the path.`,
      { cause },
    );
  }
}

function parseRecord(line: string, file: string, lineNumber: number): CatalogueProduct {
  const place = `${file}, line ${lineNumber}`;
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new SandboxConfigurationError(
      `${place} is not valid JSON. Put each product record on one line (JSON Lines), or remove the line.`,
      { cause },
    );
  }
  const { data, error } = recordSchema.safeParse(value);
  if (data) return data;
  throw new SandboxConfigurationError(
    `${place} is not a product record (${describeIssues(error)}). Correct or remove the line. Id and Name are required strings.`,
  );
}
