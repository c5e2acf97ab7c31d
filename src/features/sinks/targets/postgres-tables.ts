/** Tables of PostgreSQL sinks: their columns, their definition, and checks against the catalogue of the database. */
import { nearestName } from '../../../core/terms/text.ts';

/** Settings of the tables of a sink. Names have the form `table` or `schema.table`. */
export interface TableSettings {
  products: string;
  /** Fields by column of an existing table; null for a table with all fields. */
  columns: Readonly<Record<string, string>> | null;
  notifications: string | null;
  deleted: 'mark' | 'remove';
  /** True: missing tables are created. */
  create: boolean;
}

/** Fields of a product, with the type of their columns in a created table. */
export const productFields = {
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

export type ProductField = keyof typeof productFields;

const notificationFields = {
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
} as const;

/** Removed products, so that an older notification does not add them again. */
const removedFields = {
  product_id: 'text',
  state_at: 'timestamptz',
  position: 'bigint',
} as const;

export type FieldType = (typeof productFields)[ProductField];

/** Fields of a product without a record that only define its state. */
export const stateFields: ReadonlySet<string> = new Set(
  'event subscription position state_at deleted_at received_at updated_at'.split(' '),
);
export const nameFields: ReadonlySet<string> = new Set(['product_id', 'product_name']);

/** A table that the sink writes. */
export interface SinkTable {
  purpose: 'products' | 'removed' | 'notifications';
  /** As in messages: `schema.table`. */
  name: string;
  /** Quoted for SQL. */
  sqlName: string;
  columns: readonly { column: string; field: string; type: FieldType }[];
  /** Column with a unique key. */
  key: string;
}

export const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/** Returns the tables that the sink needs. */
export function sinkTables(settings: TableSettings): SinkTable[] {
  const { products, columns, notifications, deleted } = settings;
  const mapped = columns ?? allColumns(productFields);
  const removed = table('removed', `${products}_removed`, allColumns(removedFields), removedFields);
  return [
    table('products', products, mapped, productFields),
    ...(deleted === 'remove' ? [removed] : []),
    ...(notifications === null
      ? []
      : [
          table(
            'notifications',
            notifications,
            allColumns(notificationFields),
            notificationFields,
            'id',
          ),
        ]),
  ];
}

function allColumns(fields: object): Record<string, string> {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, name]));
}

function table(
  purpose: SinkTable['purpose'],
  name: string,
  mapping: Readonly<Record<string, string>>,
  types: Readonly<Record<string, FieldType>>,
  keyField = 'product_id',
): SinkTable {
  const columns = Object.entries(mapping).flatMap(([column, field]) => {
    const type = types[field];
    return type === undefined ? [] : [{ column, field, type }];
  });
  const key = columns.find(({ field }) => field === keyField)?.column ?? keyField;
  return { purpose, name, sqlName: name.split('.').map(quoted).join('.'), columns, key };
}

/** Fields that a mapping must have, because they decide which state is newer. */
function requiredFields(deleted: TableSettings['deleted']): ProductField[] {
  const always = ['product_id', 'state_at', 'position'] as const;
  return deleted === 'mark' ? [...always, 'deleted_at'] : [...always];
}

/** Returns the faults of a mapping that do not depend on a table. */
export function mappingFaults({ columns, deleted }: Pick<TableSettings, 'columns' | 'deleted'>) {
  if (columns === null) return [];
  const known = Object.keys(productFields);
  const fields = Object.values(columns);
  const missing = requiredFields(deleted).filter((field) => !fields.includes(field));
  const repeated = fields.filter((field, i) => fields.indexOf(field) !== i);
  return [
    ...Object.entries(columns)
      .filter(([, field]) => !known.includes(field))
      .map(([column, field]) => {
        const nearest = nearestName(field, known);
        const hint = nearest === null ? 'see docs/sinks.md' : `use ${nearest}`;
        return `columns.${column}: unknown field ${field}; ${hint}`;
      }),
    ...missing.map((field) => `columns must have a column for ${field}`),
    ...[...new Set(repeated)].map((field) => `columns has several columns for ${field}`),
  ];
}

/** A column of an existing table. */
interface FoundColumn {
  /** With its modifier, such as `geometry(Polygon,4326)`. */
  type: string;
  name: string;
  schema: string;
  /** `pg_type.typcategory`. */
  category: string;
  isGenerated: boolean;
  /** NOT NULL. */
  isRequired: boolean;
  needsValue: boolean;
}

export interface FoundTable extends SinkTable {
  /** Null: the table does not exist. */
  found: {
    /** `pg_class.relkind`. */
    kind: string;
    columns: Readonly<Record<string, FoundColumn>>;
    /** Columns with a unique index of their own. */
    unique: readonly string[];
    /** Privileges that the user lacks. */
    lacking: readonly string[];
  } | null;
  /** True if the user may create the table; null if its schema does not exist. */
  mayCreate: boolean | null;
}

export interface FoundTables {
  /** `server_version`. */
  version: string;
  /** Schema of PostGIS; null without it. */
  postgis: string | null;
  /** True if the server can compress with LZ4, which is faster than its default. */
  hasLz4: boolean;
  tables: FoundTable[];
}

/** Runs a statement, and returns its rows. */
export type Query = (sql: string, values?: readonly unknown[]) => Promise<unknown[]>;

const databaseSql = `SELECT current_setting('server_version') AS version,
  (SELECT n.nspname FROM pg_extension AS e JOIN pg_namespace AS n ON n.oid = e.extnamespace
   WHERE e.extname = 'postgis') AS postgis,
  EXISTS (SELECT FROM pg_settings
    WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)) AS "hasLz4"`;

const tableSql = `SELECT c.relkind AS kind,
  (SELECT json_object_agg(a.attname, json_build_object(
     'type', format_type(a.atttypid, a.atttypmod), 'name', t.typname, 'schema', n.nspname,
     'category', t.typcategory, 'isGenerated', a.attgenerated <> '' OR a.attidentity = 'a',
     'isRequired', a.attnotnull,
     'needsValue', a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''))
   FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid
     JOIN pg_namespace AS n ON n.oid = t.typnamespace
   WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped) AS columns,
  (SELECT coalesce(json_agg(a.attname), '[]')
   FROM pg_index AS i JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
   WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid AND i.indimmediate
     AND i.indnkeyatts = 1 AND i.indpred IS NULL AND i.indexprs IS NULL) AS "unique",
  (SELECT coalesce(json_agg(name), '[]') FROM unnest($2::text[]) AS name
   WHERE NOT has_table_privilege(c.oid, name)) AS lacking,
  (SELECT has_schema_privilege(n.oid, 'CREATE') FROM pg_namespace AS n
   WHERE n.nspname = coalesce($3, current_schema())) AS may_create
  FROM (SELECT to_regclass($1)::oid AS oid) AS known LEFT JOIN pg_class AS c ON c.oid = known.oid`;

/** Reads the tables from the catalogue of the database. Rejects with the error of the query. */
export async function findTables(query: Query, needed: readonly SinkTable[]): Promise<FoundTables> {
  const [database] = await query(databaseSql);
  const about = database as Omit<FoundTables, 'tables'>;
  const tables: FoundTable[] = [];
  for (const one of needed) {
    const schema = one.name.includes('.') ? one.name.split('.')[0] : null;
    const [row] = await query(tableSql, [one.sqlName, privilegesFor(one, needed), schema]);
    const { kind, columns, unique, lacking, may_create: mayCreate } = row as FoundRow;
    const found = kind === null ? null : { kind, columns: columns ?? {}, unique, lacking };
    tables.push({ ...one, found, mayCreate });
  }
  return { ...about, tables };
}

type FoundRow = Omit<NonNullable<FoundTable['found']>, 'kind' | 'columns'> & {
  kind: string | null;
  columns: Readonly<Record<string, FoundColumn>> | null;
  may_create: boolean | null;
};

function privilegesFor({ purpose }: SinkTable, all: readonly SinkTable[]): string[] {
  if (purpose === 'notifications') return ['SELECT', 'INSERT'];
  const removes = all.some((one) => one.purpose === 'removed');
  return ['SELECT', 'INSERT', 'UPDATE', ...(removes ? ['DELETE'] : [])];
}

/** Returns all reasons why the sink cannot write its tables; missing tables only without `create`. */
export function tableFaults({ tables }: FoundTables, { create }: TableSettings): string[] {
  return tables.flatMap((one) => {
    const { name, found } = one;
    if (found !== null) return columnFaults(one, found);
    if (!create) return [`the table ${name} does not exist, and create is false`];
    if (one.mayCreate === null) return [`the schema of the table ${name} does not exist`];
    return one.mayCreate ? [] : [`the user has no permission to create the table ${name}`];
  });
}

function columnFaults(
  { name, purpose, columns, key }: SinkTable,
  found: NonNullable<FoundTable['found']>,
): string[] {
  // Ordinary and partitioned tables.
  if (!['r', 'p'].includes(found.kind)) return [`${name} is not a table`];
  const written = new Set(columns.map(({ column }) => column));
  const empty = Object.entries(found.columns).filter(
    ([column, { needsValue }]) => needsValue && !written.has(column),
  );
  const keyed = found.columns[key] === undefined || found.unique.includes(key);
  return [
    ...columns.flatMap(({ column, field, type }) => {
      const known = found.columns[column];
      if (known === undefined) return [`the table ${name} has no column ${column}`];
      if (known.isGenerated) return [`the column ${name}.${column} is generated`];
      if (
        purpose === 'products' &&
        known.isRequired &&
        !nameFields.has(field) &&
        !(stateFields.has(field) && field !== 'deleted_at')
      ) {
        return [`the column ${name}.${column} must accept NULL: a product may have no ${field}`];
      }
      return canStore(known, type, field)
        ? []
        : [`the column ${name}.${column} (${known.type}) cannot store ${field}`];
    }),
    ...(keyed ? [] : [`the table ${name} has no unique key on ${key} alone`]),
    ...empty.map(([column]) => `the column ${name}.${column} needs a value, but has no default`),
    ...found.lacking.map((privilege) => `the user lacks ${privilege} on the table ${name}`),
  ];
}

/** Categories of `pg_type.typcategory`: S text, D time, N number, B boolean. */
const categories: Readonly<Record<FieldType, string>> = {
  text: 'S',
  timestamptz: 'DS',
  bigint: 'NS',
  'double precision': 'NS',
  boolean: 'BS',
  jsonb: 'S',
  geometry: 'S',
};

function canStore(
  { type, name, category }: FoundColumn,
  fieldType: FieldType,
  field: string,
): boolean {
  // Times of states are compared, to the microsecond.
  if (field === 'state_at') return /^timestamp(?!\()/.test(type);
  if (field === 'position') return ['int8', 'numeric', 'float8'].includes(name);
  if (categories[fieldType].includes(category)) return true;
  if (fieldType === 'text') return name === 'uuid';
  if (name === 'json' || name === 'jsonb') return fieldType === 'jsonb' || fieldType === 'geometry';
  return fieldType === 'geometry' && isSpatial(name) && ['', '4326'].includes(systemOf(type));
}

const isSpatial = (name: string) => name === 'geometry' || name === 'geography';

/** Returns the reference system of `geometry(Polygon,3857)`; empty if any is allowed. */
const systemOf = (type: string) => /,(\d+)\)$/.exec(type)?.[1] ?? '';

/** Returns the statements that create the missing tables. */
export function creatingSql(found: FoundTables): string[] {
  const missing = found.tables.filter((one) => one.found === null);
  return missing.flatMap((one) => tableSqlOf(one, found));
}

function tableSqlOf(
  { name, sqlName, columns, key }: SinkTable,
  { postgis, hasLz4 }: Pick<FoundTables, 'postgis' | 'hasLz4'>,
) {
  const typeOf = (type: FieldType) => {
    if (type === 'geometry' && postgis !== null)
      return `${quoted(postgis)}.geometry(Geometry,4326)`;
    const written = type === 'geometry' ? 'jsonb' : type;
    return written === 'jsonb' && hasLz4 ? 'jsonb COMPRESSION lz4' : written;
  };
  const list = columns.map(
    ({ column, type }) =>
      `${quoted(column)} ${typeOf(type)}${column === key ? ' PRIMARY KEY' : ''}`,
  );
  const create = `CREATE TABLE IF NOT EXISTS ${sqlName} (\n  ${list.join(',\n  ')}\n)`;
  const geometry = columns.find(({ type }) => type === 'geometry')?.column;
  if (postgis === null || geometry === undefined) return [create];
  const index = quoted(`${name.split('.').at(-1)}_${geometry}`.slice(0, 63));
  return [
    create,
    `CREATE INDEX IF NOT EXISTS ${index} ON ${sqlName} USING gist (${quoted(geometry)})`,
  ];
}

/** A column as a statement writes it. */
export interface WrittenColumn {
  column: string;
  field: string;
  /** Type of the value in `jsonb_to_recordset`. */
  type: string;
  /** Expression for the value in the row `new`. */
  value: string;
}

/** Returns how the columns of an existing table are written. */
export function writtenColumns(table: FoundTable, postgis: string | null): WrittenColumn[] {
  return table.columns.map(({ column, field }) => {
    const known = table.found?.columns[column];
    const value = `new.${quoted(field)}`;
    if (field === 'updated_at') return { column, field, type: 'text', value: 'now()' };
    if (known === undefined || !isSpatial(known.name)) {
      return { column, field, type: known?.type ?? 'text', value };
    }
    const schema = quoted(postgis ?? known.schema);
    const geometry = `${schema}.ST_GeomFromGeoJSON(${value})`;
    const isMulti = /\(Multi/i.test(known.type);
    const whole = isMulti ? `${schema}.ST_Multi(${geometry})` : geometry;
    const isGeography = known.name === 'geography';
    return {
      ...{ column, field, type: 'text' },
      value: isGeography ? `${whole}::${quoted(known.schema)}.geography` : whole,
    };
  });
}
