/** Delivers items to tables of PostgreSQL: products in their newest state and, if configured, notifications. */
import { z } from 'zod';
import { databaseUrls } from '../../../core/http/network-address.ts';
import { errorText } from '../../../core/terms/app-error.ts';
import { type Evaluation, evaluation, ok } from '../../../core/terms/evaluation.ts';
import { certificatesForm, defineSinkKind, nameField, secretForm, unusable } from '../target.ts';
import { createBatches, createWrite, tryWrite } from './postgres-batches.ts';
import {
  connect,
  exposureOf,
  loadPg,
  type PostgresSettings,
  postgresFault,
  queryOf,
  serversOf,
} from './postgres-connection.ts';
import { prepareItem } from './postgres-rows.ts';
import {
  type FoundTables,
  findTables,
  mappingFaults,
  sinkTables,
  tableFaults,
} from './postgres-tables.ts';

const tableForm =
  'must be a table of letters, digits and _, such as products or gis.products, of at most 50 characters';
/** Leaves space for the suffixes of other names, which have at most 63 characters. */
const tableName = z.string(tableForm).regex(/^([A-Za-z_]\w{0,49}\.)?[A-Za-z_]\w{0,49}$/, tableForm);

const columnForm = 'must be a column of letters, digits and _, with at most 63 characters';

const postgresForm =
  "must be an object, such as { url: 'postgres://earshot@127.0.0.1/gis', passwordFile: 'gis-password' }";

const postgresSchema = z
  .strictObject(
    {
      /** Database: `postgres://user@host:5432/database`. */
      url: z.string('must be a URL, such as postgres://earshot@127.0.0.1/gis').pipe(databaseUrls),
      /** File with the password of the user; must not be readable by everyone. */
      passwordFile: nameField('gis-password').optional(),
      /** PEM file with the certificate authorities of the servers. */
      ca: nameField('authority.pem').optional(),
      /** Table of the products. */
      products: tableName.default('earshot_products'),
      /** Fields by column, for a table of your own. */
      columns: z
        .record(
          z.string().regex(/^[A-Za-z_]\w{0,62}$/, columnForm),
          z.string('must be a field, such as product_name'),
          "must be an object, such as { id: 'product_id', geom: 'footprint' }",
        )
        .optional(),
      /** Table of the notifications; by default none. */
      notifications: tableName.optional(),
      /** Deleted products: `mark` (default) sets `deleted_at`, `remove` deletes the row. */
      deleted: z.enum(['mark', 'remove']).default('mark'),
      /** True (default): missing tables are created. */
      create: z.boolean('must be true or false').default(true),
    },
    postgresForm,
  )
  .superRefine(({ url, passwordFile, ca, columns = null, deleted, ...tables }, context) => {
    const urls = url.map((one) => new URL(one));
    const faults = mappingFaults({ columns, deleted });
    if ([tables.products, `${tables.products}_removed`].includes(tables.notifications ?? '')) {
      faults.push('notifications must be a table of its own');
    }
    if (passwordFile !== undefined && urls.some(({ username }) => username === '')) {
      faults.push('passwordFile requires a user in the URL');
    }
    if (passwordFile !== undefined && urls.some(({ password }) => password !== '')) {
      faults.push('passwordFile and a password in the URL must not be set together');
    }
    const modes = urls.map(({ searchParams }) => searchParams.get('sslmode'));
    if (ca !== undefined && modes.some((mode) => mode === 'disable' || mode === 'no-verify')) {
      faults.push('ca requires verified TLS: remove sslmode from the URL');
    }
    for (const fault of faults) context.addIssue(fault);
  });

/** Upserts the product of each item, in batches of one transaction. Connects with the first item. */
export const postgres = defineSinkKind({
  hasThread: true,
  load: loadPg,
  fields: {
    /** Tables of a PostgreSQL database. */
    postgres: postgresSchema.optional(),
  },
  targetFields: Object.keys(postgresSchema.shape),
  concurrency: 256,
  settings: ({ postgres }, readFile): PostgresSettings => {
    if (postgres === undefined) throw new Error('The schema requires a target.');
    const { url, passwordFile, ca, products, deleted, create } = postgres;
    const { columns = null, notifications = null } = postgres;
    return {
      urls: url,
      password: readFile('postgres.passwordFile', passwordFile, secretForm),
      ca: readFile('postgres.ca', ca, certificatesForm),
      ...{ products, columns, notifications, deleted, create },
    };
  },
  open: (settings, { name, timeoutMs }) => {
    const sink = { name, timeoutMs };
    const writer = createWrite(settings, sink);
    const batches = createBatches(writer.write);
    return {
      deliver: async (document, signal) => {
        const item = prepareItem(document, settings);
        try {
          await loadPg();
        } catch (error) {
          const reason = `the PostgreSQL client library cannot be loaded: ${errorText(error)}`;
          return { kind: 'misconfigured', reason };
        }
        return document.test ? tryWrite([item], settings, sink) : batches.add(item, signal);
      },
      close: writer.close,
    };
  },
  check: async (settings, { sink, signal }) => {
    const where = `PostgreSQL at ${serversOf(settings)}`;
    let client: Awaited<ReturnType<typeof connect>> | undefined;
    const end = () => void client?.end().catch(() => undefined);
    signal.addEventListener('abort', end);
    try {
      client = await connect(settings, sink.name);
      return findingOf(await findTables(queryOf(client), sinkTables(settings)), settings, where);
    } catch (error) {
      return unusable(where, postgresFault(error, settings).reason);
    } finally {
      signal.removeEventListener('abort', end);
      end();
    }
  },
});

function findingOf(found: FoundTables, settings: PostgresSettings, where: string): Evaluation {
  const faults = tableFaults(found, settings);
  if (faults.length > 0) {
    const text = `The tables in ${where} cannot be written: ${faults.join('; ')}.`;
    const nextStep =
      'Correct the tables or the mapping, or grant the permissions: see "PostgreSQL and PostGIS" in docs/sinks.md.';
    return evaluation('critical', text, nextStep);
  }
  const tables = found.tables.map(({ name, found: known }) =>
    known === null ? `${name} (will be created)` : name,
  );
  const spatial = `${found.postgis === null ? 'without' : 'with'} PostGIS`;
  const message = `${where}, version ${found.version} ${spatial}, accepts the login. Tables: ${tables.join(', ')}.`;
  const exposure = exposureOf(settings);
  if (exposure === null) return ok(message);
  const nextStep =
    'Remove sslmode from the URL, so that TLS with a verified certificate is used. For an authority of your own, set `ca`.';
  return evaluation('warning', `${message} ${exposure}`, nextStep);
}
