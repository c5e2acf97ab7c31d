/** Databases for tests of PostgreSQL sinks. */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { SinkTarget } from '../../../src/features/sinks/registry.ts';
import { findPostgres, type PostgresServer } from '../../helpers/postgres-server.ts';
import { query } from '../shared-log/shared-log-context.ts';

export type PostgresTarget = Extract<SinkTarget, { kind: 'postgres' }>;

/** Debian's packages `postgresql` and `postgresql-postgis`. Required in CI. */
export const hasPostgis = process.env.CI !== undefined || isPostgisInstalled();

function isPostgisInstalled(): boolean {
  const programs = findPostgres();
  const version = /\/(\d+)\/bin$/.exec(programs ?? '')?.[1];
  return existsSync(`/usr/share/postgresql/${version}/extension/postgis.control`);
}

/** A target with the default settings. */
export function postgresTarget(url: string, fields: Partial<PostgresTarget> = {}): PostgresTarget {
  return {
    ...{ kind: 'postgres', urls: [url], password: null, ca: null },
    ...{ products: 'earshot_products', notifications: null },
    ...fields,
  };
}

/** Creates a database with PostGIS; returns its URL. */
export async function createSpatialDatabase(server: PostgresServer): Promise<string> {
  const name = `gis_${randomUUID().replaceAll('-', '')}`;
  await query(await templateOf(server), `CREATE DATABASE ${name} TEMPLATE ${template}`);
  return server.url(name);
}

const template = 'with_postgis';
const prepared = new WeakSet<PostgresServer>();

/** Creates the template once: installing the extension takes longer than a copy. */
async function templateOf(server: PostgresServer): Promise<string> {
  const url = server.url('postgres');
  if (prepared.has(server)) return url;
  prepared.add(server);
  await query(url, `CREATE DATABASE ${template}`);
  await query(server.url(template), 'CREATE EXTENSION postgis');
  return url;
}
