/**
 * Writes products as GeoParquet 1.1: typed columns, the footprint as WKB, and its bounding box. Column statistics of
 * each row group let readers skip the groups outside a time or a box.
 */

import { constants, zstdCompressSync } from 'node:zlib';
import type { SchemaElement } from 'hyparquet-writer';
import type { Output } from '../../core/cli/io.ts';
import { writeOut } from '../../core/cli/output.ts';
import { millisecondOf } from '../../core/terms/dates.ts';
import {
  type productFields,
  type productLinkFields,
  toProductLinks,
} from '../../core/terms/read-models.ts';
import type { AnyGeometry, Box } from '../../filter/filter-tree.ts';
import { toGeoJson } from '../../filter/geometry/geojson.ts';
import { extentOf, joinedBox, positionsOf } from '../../filter/geometry/ring.ts';
import type { FoundProduct, ProductRow } from '../../filter/products.ts';

type Library = typeof import('hyparquet-writer');

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

/** Writes one file of products with exact footprints as a stream, and resolves when the output has accepted all of it. */
export async function writeGeoParquet(
  output: Output,
  products: AsyncIterable<FoundProduct>,
  { fields, catalogueUrl, version = 'unknown' }: GeoParquetOptions,
): Promise<void> {
  const library = await import('hyparquet-writer');
  const names = fields.filter((name): name is Field => name in columns);
  const parquet = openFile(library, output, names, version);
  const types = new Set<string>();
  let extent: Box | null = null;
  let rows: ProductRow[] = [];
  let shapes: (Shape | null)[] = [];
  let bytes = 0;
  const write = async () => {
    const columnData = [
      ...names.map((name) => ({ name, data: rows.map((one) => cellOf(name, one, catalogueUrl)) })),
      // The smallest and the largest WKB are of no use to a reader.
      { name: 'geometry', data: shapes.map((one) => one?.wkb ?? null), statistics: false },
      { name: 'bbox', data: shapes.map((one) => one && boxColumns(one.box)) },
    ];
    [rows, shapes, bytes] = [[], [], 0];
    await parquet.write({ columnData, rowGroupSize: groupRowsMax });
  };
  for await (const { row, footprint } of products) {
    const shape = shapeOf(footprint ?? null, library);
    rows.push(row);
    shapes.push(shape);
    if (shape !== null) {
      types.add(shape.type);
      extent = extent === null ? shape.box : joinedBox(extent, shape.box);
      bytes += shape.wkb.length;
    }
    if (rows.length >= groupRowsMax || bytes >= groupFootprintBytesMax) await write();
  }
  await write();
  parquet.kvMetadata = [{ key: 'geo', value: JSON.stringify(metadataOf(types, extent)) }];
  await parquet.finish();
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

type Field = (typeof productFields)[number] | (typeof productLinkFields)[number];

/** The columns of CSV with their types. */
const columns: Readonly<Record<Field, keyof typeof elements>> = {
  ...{ position: 'integer', productId: 'text', productName: 'text', collection: 'text' },
  ...{ platform: 'text', productType: 'text', processingLevel: 'text', sensingStart: 'time' },
  ...{ sensingEnd: 'time', publicationDate: 'time', modificationDate: 'time', online: 'boolean' },
  ...{ sizeBytes: 'integer', cloudCoverPercent: 'number', orbitNumber: 'integer', tile: 'text' },
  ...{ relativeOrbitNumber: 'integer', orbitDirection: 'text', processingBaseline: 'text' },
  ...{ receivedAt: 'time', deletionDate: 'time', deletionCause: 'text', s3Path: 'text' },
  downloadUrl: 'text',
};

function cellOf(name: Field, row: ProductRow, catalogueUrl: string): unknown {
  if (name === 'downloadUrl') return toProductLinks(row, catalogueUrl).downloadUrl;
  const kind = columns[name];
  const key = kind === 'time' ? `${name}Us` : name;
  const value = row[key as keyof ProductRow];
  if (typeof value !== 'number' || kind === 'number') return value;
  if (Number.isSafeInteger(value)) return BigInt(value);
  // The catalogue may send a number with a fraction as an integer: the column then has no value.
  return kind === 'time' ? BigInt(millisecondOf(value)) * 1000n : null;
}

/** The order of a bounding box column (GeoParquet 1.1, bounding box columns). */
const boxFields = ['xmin', 'ymin', 'xmax', 'ymax'] as const;

const boxColumns = ({ west, south, east, north }: Box) => {
  return { xmin: west, ymin: south, xmax: east, ymax: north };
};

/** Opens a file on the output. The output gets each row group when it is encoded. */
function openFile(
  { ByteWriter, ParquetWriter }: Library,
  output: Output,
  names: readonly Field[],
  version: string,
) {
  const writer = new ByteWriter();
  const flush = async () => {
    const chunk = writer.getBytes().slice();
    writer.index = 0;
    if (chunk.length > 0) await writeOut(output, chunk);
  };
  const optional = { repetition_type: 'OPTIONAL' } as const;
  return new ParquetWriter({
    writer: Object.assign(writer, { flush, finish: flush }),
    schema: [
      { name: 'schema', num_children: names.length + 2 },
      ...names.map((name) => ({ name, ...elements[columns[name]], ...optional })),
      { name: 'geometry', type: 'BYTE_ARRAY', ...optional },
      { name: 'bbox', num_children: boxFields.length, ...optional },
      ...boxFields.map((name): SchemaElement => {
        return { name, type: 'DOUBLE', repetition_type: 'REQUIRED' };
      }),
    ],
    codec: 'ZSTD',
    compressors: { ZSTD: compress },
    createdBy: `earshot version ${version}`,
  });
}

function compress(bytes: Uint8Array): Uint8Array {
  return zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
}

interface Shape {
  type: string;
  wkb: Uint8Array;
  box: Box;
}

function shapeOf(footprint: AnyGeometry | null, { geojsonToWkb }: Library): Shape | null {
  if (footprint === null) return null;
  const geometry = toGeoJson(footprint);
  // All longitudes for a geometry that is cut at the antimeridian.
  const box = extentOf(positionsOf(geometry).flat());
  if (!(box.west <= box.east && box.south <= box.north)) return null;
  // The type of the library has mutable lists, but it only reads them.
  const toWkb = geojsonToWkb as unknown as (geometry: AnyGeometry) => Uint8Array;
  // A copy, because the buffer of the library has at least one kilobyte.
  return { type: geometry.type, wkb: toWkb(geometry).slice(), box };
}

/**
 * Returns the metadata `geo` (GeoParquet 1.1) of the footprints of the whole file; without any, `extent` is null.
 * Without `crs`, coordinates are OGC:CRS84.
 */
function metadataOf(types: ReadonlySet<string>, extent: Box | null) {
  const covering = boxFields.map((name) => [name, ['bbox', name]] as const);
  return {
    version: '1.1.0',
    primary_column: 'geometry',
    columns: {
      geometry: {
        encoding: 'WKB',
        geometry_types: [...types].toSorted(),
        orientation: 'counterclockwise',
        ...(extent && { bbox: Object.values(boxColumns(extent)) }),
        covering: { bbox: Object.fromEntries(covering) },
      },
    },
  };
}
