/** Rows of PostgreSQL sinks, their tables, and the statements that write them: a row changes only to a newer state. */
import type pg from 'pg';
import { formatDateUs, readDateUs } from '../../../core/terms/dates.ts';
import { toGeoJson } from '../../../filter/geometry/geojson.ts';
import { polygonsOf } from '../../../filter/geometry/ring.ts';
import { factsOfRecord } from '../../../filter/product-facts.ts';
import { productView } from '../../../filter/product-view.ts';
import { type ProductRecord, textOrNull } from '../../../filter/values.ts';
import type { NotificationDocument } from '../../messages/document.ts';

/** Settings of the tables of a sink. Names have the form `table` or `schema.table`. */
export interface TableSettings {
  products: string;
  notifications: string | null;
}

/** Columns of the table of products, with their types. */
const productColumns = {
  product_id: 'text',
  product_name: 'text',
  collection: 'text',
  platform: 'text',
  product_type: 'text',
  processing_level: 'text',
  sensing_start: 'timestamptz',
  sensing_end: 'timestamptz',
  publication_date: 'timestamptz',
  modification_date: 'timestamptz',
  size_bytes: 'bigint',
  online: 'boolean',
  cloud_cover_percent: 'double precision',
  // The catalogue's Integer attributes may have a fraction.
  orbit_number: 'double precision',
  relative_orbit_number: 'double precision',
  orbit_direction: 'text',
  tile: 'text',
  processing_baseline: 'text',
  s3_path: 'text',
  footprint: 'geometry',
  record: 'jsonb',
  event: 'text',
  subscription: 'text',
  position: 'bigint',
  state_at: 'timestamptz',
  deleted_at: 'timestamptz',
  deletion_cause: 'text',
  received_at: 'timestamptz',
  updated_at: 'timestamptz',
} as const;

type ProductColumn = keyof typeof productColumns;

/** Columns that change when a product is deleted without a record. */
const stateColumns: ReadonlySet<ProductColumn> = new Set([
  ...(['event', 'subscription', 'position', 'state_at'] as const),
  ...(['deleted_at', 'received_at', 'updated_at'] as const),
]);

const notificationColumns = {
  id: 'text',
  sink: 'text',
  position: 'bigint',
  subscription: 'text',
  event: 'text',
  product_id: 'text',
  product_name: 'text',
  subscription_id: 'text',
  ack_id: 'text',
  notification_date: 'timestamptz',
  received_at: 'timestamptz',
  source: 'text',
  value: 'jsonb',
};

/** Rows of a document, as JSON. */
export interface Rows {
  /** Columns that it updates in the row of a known product. */
  change: 'all' | 'state' | 'none';
  product: string;
  notification: string;
}

/** Throws for a record that is nested too deeply to be written as JSON. */
export function rowsOf(document: NotificationDocument): Rows {
  const { value, event } = document;
  const { footprint, ...row }: Row = productOf(document);
  return {
    change: value !== null ? 'all' : event === 'deleted' ? 'state' : 'none',
    product: jsonOf({ ...row, [shape]: footprint }),
    notification: jsonOf(notificationOf(document)),
  };
}

/** Key of the footprint in a row. No column has a space: `jsonb_populate_record` skips it. */
const shape = 'the footprint';

type Row = Partial<Record<ProductColumn, unknown>>;

/** PostgreSQL has no year 0000, but a year 1 BC. */
const timeText = (text: string | null) => text?.replace(/^0000(.*)/, '0001$1 BC') ?? null;

const timeOf = (us: number | null) => (us === null ? null : timeText(formatDateUs(us)));

/** The same dates as in the product index (`product-writer.ts`). */
function productOf(document: NotificationDocument): Row {
  const { productId, event, subscription, position, receivedAt, value, notificationDate } =
    document;
  const dateIn = (field: string) => timeOf(readDateUs(value?.[field]));
  const deletedAt =
    event === 'deleted'
      ? (dateIn('DeletionDate') ?? timeText(notificationDate) ?? receivedAt)
      : null;
  return {
    ...recordFields(document),
    product_id: productId.toLowerCase(),
    record: value,
    ...{ event, subscription, position, received_at: receivedAt },
    state_at: deletedAt ?? dateIn('ModificationDate') ?? dateIn('PublicationDate'),
    deleted_at: deletedAt,
    deletion_cause: deletedAt === null ? null : textOrNull(value?.DeletionCause),
  };
}

/** The facts of the product index, with the names of columns: `sensingStartUs` becomes `sensing_start`. */
function recordFields({ value, productName }: NotificationDocument): Row {
  if (value === null) return { product_name: productName };
  const named: ProductRecord =
    textOrNull(value.Name) === null ? { ...value, Name: productName } : value;
  const columns = Object.entries(factsOfRecord(named, productName)).map(([name, fact]) => [
    columnOf(name.replace(/Us$/, '')),
    name.endsWith('Us') ? timeOf(fact as number | null) : fact,
  ]);
  return { ...Object.fromEntries(columns), footprint: footprintOf(named) };
}

/** Null with a ring of less than three corners: PostGIS stores it, but queries on it fail. */
function footprintOf(record: ProductRecord) {
  const view = productView(record);
  const geometry = view.geometry();
  if (geometry === null || view.footprint() === null) return null;
  const valid = toGeoJson(geometry);
  return polygonsOf(valid)
    .flat()
    .some((ring) => ring.length < 4)
    ? null
    : valid;
}

/** The fields of the document. Those that are no columns are not written. */
function notificationOf(document: NotificationDocument): object {
  const columns = Object.entries(document).map(([name, value]) => [columnOf(name), value]);
  return {
    ...Object.fromEntries(columns),
    // The same in a replay, which adds no row.
    id: document.notificationId,
    notification_date: timeText(document.notificationDate),
  };
}

const columnOf = (field: string) => field.replaceAll(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);

/** Writes JSON. NUL and surrogates without their pair, which PostgreSQL cannot store, become U+FFFD. */
function jsonOf(row: object): string {
  return JSON.stringify(row).replaceAll(/\\(u0000|ud[89a-f]..|.)/g, (written, code: string) =>
    code.length === 1 ? written : '\\ufffd',
  );
}

/** Statements with a row as their only parameter. */
export interface Statements {
  products: Record<Rows['change'], string>;
  notifications: string | null;
}

/** Writes the rows, in a transaction of the caller. */
export async function writeRows(
  client: pg.ClientBase,
  { products, notifications }: Statements,
  { change, product, notification }: Rows,
): Promise<void> {
  await client.query(products[change], [product]);
  if (notifications !== null) await client.query(notifications, [notification]);
}

/** Creates missing tables, and returns the statements that write into them, in a transaction of the caller. */
export async function prepareTables(
  client: pg.ClientBase,
  { products, notifications }: TableSettings,
): Promise<Statements> {
  // Another program may create the same tables.
  await client.query(`SELECT pg_advisory_xact_lock(hashtext('earshot sink'))`);
  await createTable(client, products, productColumns, await findPostgis(client));
  if (notifications !== null) await createTable(client, notifications, notificationColumns, null);
  const columns = Object.keys(notificationColumns).map((column) => [column] as const);
  return {
    products: productSql(products, await footprintSql(client, products)),
    notifications:
      notifications === null
        ? null
        : `${insertSql(notifications, columns)} ON CONFLICT (id) DO NOTHING`,
  };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

const sqlName = (table: string) => table.split('.').map(quoted).join('.');

async function findPostgis(client: pg.ClientBase): Promise<string | null> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT nspname AS name FROM pg_extension JOIN pg_namespace AS schema ON schema.oid = extnamespace
     WHERE extname = 'postgis'`,
  );
  return rows[0]?.name ?? null;
}

/** Creates a missing table; its first column is the key. Does not require the permission for an existing table. */
async function createTable(
  client: pg.ClientBase,
  name: string,
  columns: Readonly<Record<string, string>>,
  postgis: string | null,
): Promise<void> {
  const found = await client.query('SELECT WHERE to_regclass($1) IS NOT NULL', [sqlName(name)]);
  if (found.rows.length > 0) return;
  const geometry = postgis === null ? 'jsonb' : `${quoted(postgis)}.geometry(Geometry,4326)`;
  const list = Object.entries(columns).map(([column, type], i) => {
    const written = type === 'geometry' ? geometry : type;
    return `${column} ${written}${i === 0 ? ' PRIMARY KEY' : ''}`;
  });
  await client.query(`CREATE TABLE ${sqlName(name)} (${list.join(', ')})`);
  if (postgis === null) return;
  const index = quoted(`${name.split('.').at(-1)}_footprint`);
  await client.query(`CREATE INDEX ${index} ON ${sqlName(name)} USING gist (footprint)`);
}

/** Inserts a row. The database converts each value to the type of its column. */
function insertSql(
  table: string,
  columns: readonly (readonly [column: string, value?: string])[],
): string {
  const names = columns.map(([column]) => column).join(', ');
  const values = columns.map(([column, value = `new.${column}`]) => value).join(', ');
  return `INSERT INTO ${sqlName(table)} AS known (${names})
    SELECT ${values} FROM jsonb_populate_record(null::${sqlName(table)}, $1::jsonb) AS new`;
}

function productSql(table: string, footprint: string): Statements['products'] {
  const columns = Object.keys(productColumns) as ProductColumn[];
  const insert = insertSql(
    table,
    columns.map((column) => {
      if (column === 'updated_at') return [column, 'now()'];
      return column === 'footprint' ? [column, footprint] : [column];
    }),
  );
  /*
   * States are compared by time, then a deletion is newer than a record, then by position. A record without a date is
   * older than all others.
   */
  const stateOf = (row: string) =>
    `(coalesce(${row}.state_at, '-infinity'), ${row}.deleted_at IS NOT NULL, coalesce(${row}.position, 0))`;
  const upsert = (updated: readonly ProductColumn[]) => {
    const sets = updated
      .filter((column) => column !== 'product_id')
      .map((column) => `${column} = excluded.${column}`);
    return `${insert} ON CONFLICT (product_id) DO UPDATE SET ${sets.join(', ')}
      WHERE ${stateOf('excluded')} > ${stateOf('known')}`;
  };
  return {
    all: upsert(columns),
    state: upsert(columns.filter((column) => stateColumns.has(column))),
    none: `${insert} ON CONFLICT (product_id) DO NOTHING`,
  };
}

/** Returns the value of the footprint: a geometry, or GeoJSON for a column of another type. */
async function footprintSql(client: pg.ClientBase, table: string): Promise<string> {
  const { rows } = await client.query<{ schema: string }>(
    `SELECT nspname AS schema FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
       JOIN pg_namespace AS schema ON schema.oid = typnamespace
     WHERE attrelid = to_regclass($1) AND attname = 'footprint' AND typname = 'geometry'`,
    [sqlName(table)],
  );
  const [found] = rows;
  return found === undefined
    ? `nullif($1::jsonb -> '${shape}', 'null')`
    : `${quoted(found.schema)}.ST_GeomFromGeoJSON($1::jsonb ->> '${shape}')`;
}
