/**
 * Writes products as GeoParquet 1.1: typed columns, the footprint as WKB, and its bounding box. Column statistics of
 * each row group let readers skip the groups outside a time or a box.
 */
import { constants, zstdCompressSync } from 'node:zlib';
import type { ColumnSource, SchemaElement } from 'hyparquet-writer';
import { millisecondOf } from '../domain/dates.ts';
import type { AnyGeometry, Box } from '../domain/filter-tree.ts';
import { type productFields, type productLinkFields, toProductLinks } from '../domain/json-rows.ts';
import type { FoundProduct, ProductRow } from '../domain/products.ts';
import type { toTextJson } from '../domain/summaries.ts';
import { toGeoJson } from '../filter/geometry/geojson.ts';
import { extentOf, positionsOf } from '../filter/geometry/ring.ts';
import type { Output } from './io.ts';
import { writeOut } from './output.ts';

type Library = typeof import('hyparquet-writer');

/** A product with its exact footprint, and with its summary if there are columns for it. */
export interface GeoParquetProduct extends FoundProduct {
  summary?: ReturnType<typeof toTextJson>;
}

interface GeoParquetOptions {
  /** Fields of the columns before `geometry` and `bbox`. */
  fields: readonly string[];
  /** Prefix of download URLs. */
  catalogueUrl: string;
  /** Version of earshot, for the metadata. */
  version?: string;
}

/** Limits of a row group, which is in memory until it is encoded: larger ones need more than 300 MB. */
const groupRowsMax = 10_000;
const groupFootprintBytesMax = 2 ** 25;

/** Writes one file as a stream, and resolves when the output has accepted all of it. */
export async function writeGeoParquet(
  output: Output,
  products: AsyncIterable<GeoParquetProduct>,
  { fields, catalogueUrl, version = 'unknown' }: GeoParquetOptions,
): Promise<void> {
  const library = await import('hyparquet-writer');
  const file = openFile(library, output, { fields, version });
  const group = createGroup(library, { fields, catalogueUrl });
  for await (const product of products) {
    group.add(product);
    if (!group.isFull()) continue;
    await file.write(group.take());
  }
  await file.write(group.take());
  await file.finish(group.footprints());
}

type Element = Omit<SchemaElement, 'name'>;

const elements = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MICROS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
} as const satisfies Record<string, Element>;

interface Column {
  element: Element;
  value: (product: GeoParquetProduct, catalogueUrl: string) => unknown;
}

const text = (read: (row: ProductRow) => string | null): Column => ({
  element: elements.text,
  value: ({ row }) => read(row),
});

const time = (read: (row: ProductRow) => number | null): Column => ({
  element: elements.time,
  value: ({ row }) => {
    const us = read(row);
    return integerOf(us) ?? (us === null ? null : BigInt(millisecondOf(us)) * 1000n);
  },
});

const integer = (read: (row: ProductRow) => number | null): Column => ({
  element: elements.integer,
  value: ({ row }) => integerOf(read(row)),
});

/** The catalogue may send a number with a fraction as an integer: the column then has no value. */
function integerOf(value: number | null): bigint | null {
  return value !== null && Number.isSafeInteger(value) ? BigInt(value) : null;
}

type TextField = 'summary' | 'summaryModel';

/** The columns of CSV with their types. */
const columns: Readonly<
  Record<(typeof productFields)[number] | (typeof productLinkFields)[number] | TextField, Column>
> = {
  position: integer((row) => row.position),
  productId: text((row) => row.productId),
  productName: text((row) => row.productName),
  collection: text((row) => row.collection),
  platform: text((row) => row.platform),
  productType: text((row) => row.productType),
  processingLevel: text((row) => row.processingLevel),
  sensingStart: time((row) => row.sensingStartUs),
  sensingEnd: time((row) => row.sensingEndUs),
  publicationDate: time((row) => row.publicationUs),
  modificationDate: time((row) => row.modificationUs),
  sizeBytes: integer((row) => row.sizeBytes),
  online: { element: elements.boolean, value: ({ row }) => row.online },
  cloudCoverPercent: { element: elements.number, value: ({ row }) => row.cloudCoverPercent },
  orbitNumber: integer((row) => row.orbitNumber),
  relativeOrbitNumber: integer((row) => row.relativeOrbitNumber),
  orbitDirection: text((row) => row.orbitDirection),
  tile: text((row) => row.tile),
  processingBaseline: text((row) => row.processingBaseline),
  receivedAt: time((row) => row.receivedAtUs),
  deletionDate: time((row) => row.deletionUs),
  deletionCause: text((row) => row.deletionCause),
  s3Path: text((row) => row.s3Path),
  downloadUrl: {
    element: elements.text,
    value: ({ row }, catalogueUrl) => toProductLinks(row, catalogueUrl).downloadUrl,
  },
  summary: { element: elements.text, value: ({ summary }) => summary?.text },
  summaryModel: { element: elements.text, value: ({ summary }) => summary?.model },
};

/** The order of a bounding box column (GeoParquet 1.1, bounding box columns). */
const boxFields = ['xmin', 'ymin', 'xmax', 'ymax'] as const;

function schemaOf(chosen: readonly [string, Column][]): SchemaElement[] {
  const optional = { repetition_type: 'OPTIONAL' } as const;
  return [
    { name: 'schema', num_children: chosen.length + 2 },
    ...chosen.map(([name, { element }]) => ({ name, ...element, ...optional })),
    { name: 'geometry', type: 'BYTE_ARRAY', ...optional },
    { name: 'bbox', num_children: boxFields.length, ...optional },
    ...boxFields.map((name): SchemaElement => {
      return { name, type: 'DOUBLE', repetition_type: 'REQUIRED' };
    }),
  ];
}

function columnsOf(fields: readonly string[]): [string, Column][] {
  const known: Readonly<Record<string, Column | undefined>> = columns;
  return fields.flatMap((name) => {
    const column = known[name];
    return column === undefined ? [] : [[name, column]];
  });
}

/** Values of a row group, by column. */
type Group = Pick<ColumnSource, 'name' | 'data' | 'statistics'>[];

/** Collects the products of a row group, and then of the next one. */
function createGroup(
  library: Library,
  { fields, catalogueUrl }: Pick<GeoParquetOptions, 'fields' | 'catalogueUrl'>,
) {
  const chosen = columnsOf(fields).map(([name, { value }]) => ({ name, value }));
  const footprints = createFootprints(library);
  let rows = 0;
  let values: unknown[][] = chosen.map(() => []);
  return {
    add(product: GeoParquetProduct) {
      for (const [i, { value }] of chosen.entries()) values[i]?.push(value(product, catalogueUrl));
      footprints.add(product.footprint ?? null);
      rows += 1;
    },
    isFull: () => rows >= groupRowsMax || footprints.bytes() >= groupFootprintBytesMax,
    take(): Group {
      const taken = chosen.map(({ name }, i) => ({ name, data: values[i] ?? [] }));
      [rows, values] = [0, chosen.map(() => [])];
      return [...taken, ...footprints.take()];
    },
    footprints: footprints.all,
  };
}

/** Footprints of the whole file. */
interface Footprints {
  types: ReadonlySet<string>;
  /** Null without any footprint. */
  extent: Box | null;
}

/** Collects the columns `geometry` and `bbox`. */
function createFootprints({ geojsonToWkb }: Library) {
  // The type of the library has mutable lists, but it only reads them.
  const toWkb = geojsonToWkb as unknown as (geometry: AnyGeometry) => Uint8Array;
  const types = new Set<string>();
  let extent: Box | null = null;
  let bytes = 0;
  let geometries: (Uint8Array | null)[] = [];
  let boxes: (Record<(typeof boxFields)[number], number> | null)[] = [];
  return {
    add(footprint: AnyGeometry | null) {
      const geometry = footprint === null ? null : toGeoJson(footprint);
      const box = geometry === null ? null : boxOf(geometry);
      if (geometry === null || box === null) {
        geometries.push(null);
        boxes.push(null);
        return;
      }
      // A copy, because the buffer of the library has at least one kilobyte.
      const wkb = toWkb(geometry).slice();
      types.add(geometry.type);
      extent = extent === null ? box : joined(extent, box);
      geometries.push(wkb);
      boxes.push({ xmin: box.west, ymin: box.south, xmax: box.east, ymax: box.north });
      bytes += wkb.length;
    },
    bytes: () => bytes,
    take(): Group {
      // The smallest and the largest WKB are of no use to a reader.
      const geometry = { name: 'geometry', data: geometries, statistics: false };
      const bbox = { name: 'bbox', data: boxes };
      [geometries, boxes, bytes] = [[], [], 0];
      return [geometry, bbox];
    },
    all: (): Footprints => ({ types, extent }),
  };
}

/** Returns the extent of the coordinates: all longitudes for a geometry cut at the antimeridian. Null without any. */
function boxOf(geometry: AnyGeometry): Box | null {
  const box = extentOf(positionsOf(geometry));
  return box.west <= box.east && box.south <= box.north ? box : null;
}

function joined(one: Box, other: Box): Box {
  return {
    west: Math.min(one.west, other.west),
    south: Math.min(one.south, other.south),
    east: Math.max(one.east, other.east),
    north: Math.max(one.north, other.north),
  };
}

/** Opens a file on the output. The output gets each row group when it is encoded. */
function openFile(
  { ByteWriter, ParquetWriter }: Library,
  output: Output,
  { fields, version }: { fields: readonly string[]; version: string },
) {
  const writer = new ByteWriter();
  const flush = async () => {
    const chunk = writer.getBytes().slice();
    writer.index = 0;
    if (chunk.length > 0) await writeOut(output, chunk);
  };
  const parquet = new ParquetWriter({
    writer: Object.assign(writer, { flush, finish: flush }),
    schema: schemaOf(columnsOf(fields)),
    codec: 'ZSTD',
    compressors: { ZSTD: compress },
    createdBy: `earshot version ${version}`,
  });
  return {
    write: async (columnData: Group) => {
      await parquet.write({ columnData, rowGroupSize: groupRowsMax });
    },
    finish: async (footprints: Footprints) => {
      parquet.kvMetadata = [{ key: 'geo', value: JSON.stringify(metadataOf(footprints)) }];
      await parquet.finish();
    },
  };
}

function compress(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
}

/** Returns the metadata `geo` (GeoParquet 1.1). Without `crs`, coordinates are OGC:CRS84. */
function metadataOf({ types, extent }: Footprints) {
  const covering = boxFields.map((name) => [name, ['bbox', name]] as const);
  const box = extent && [extent.west, extent.south, extent.east, extent.north];
  return {
    version: '1.1.0',
    primary_column: 'geometry',
    columns: {
      geometry: {
        encoding: 'WKB',
        geometry_types: [...types].toSorted(),
        orientation: 'counterclockwise',
        ...(box === null ? {} : { bbox: box }),
        covering: { bbox: Object.fromEntries(covering) },
      },
    },
  };
}
