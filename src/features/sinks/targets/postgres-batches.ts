/** Writes items to PostgreSQL in batches: items that arrive during a transaction share the next one. */
import type pg from 'pg';
import { networkFault } from '../../../core/http/bounded-fetch.ts';
import { errorText } from '../../../core/terms/app-error.ts';
import { type TargetAnswer, unavailable } from '../target.ts';
import {
  begin,
  connect,
  isValueError,
  type PostgresSettings,
  postgresFault,
  prepareTables,
} from './postgres-connection.ts';
import { type BatchSql, createBatchSql, type PreparedItem } from './postgres-rows.ts';

/** Maximum size of a batch, in characters, after which no other item is added. */
const batchCharactersMax = 8 * 2 ** 20;

/** Maximum items of a batch. */
const batchItemsMax = 128;

/** Time in which a server must close a connection. */
const endMs = 1_000;

interface Waiting {
  item: PreparedItem;
  answer: (answer: TargetAnswer) => void;
  isAborted: boolean;
}

/**
 * Creates the writer of a sink. One transaction runs at a time. An item whose signal is aborted is answered at once. A
 * transaction for which nobody waits any longer is cancelled with its connection, because the server may hang. If
 * `write` rejects, its items are answered as unavailable.
 */
export function createBatches(
  write: (items: readonly PreparedItem[], signal: AbortSignal) => Promise<TargetAnswer[]>,
) {
  let waiting: Waiting[] = [];
  let running: { items: readonly Waiting[]; cancelling: AbortController } | null = null;

  const start = async () => {
    if (running !== null || waiting.length === 0) return;
    const items = nextBatch(waiting);
    waiting = waiting.filter((one) => !items.includes(one));
    const cancelling = new AbortController();
    running = { items, cancelling };
    const prepared = items.map(({ item }) => item);
    try {
      const answers = await write(prepared, cancelling.signal);
      for (const [i, { answer }] of items.entries()) {
        answer(answers[i] ?? unavailable('the transaction has no result'));
      }
    } catch (error) {
      for (const { answer } of items) answer(unavailable(errorText(error)));
    }
    running = null;
    void start();
  };
  const abandon = (one: Waiting, signal: AbortSignal) => {
    one.isAborted = true;
    waiting = waiting.filter((other) => other !== one);
    if (running?.items.every(({ isAborted }) => isAborted)) running.cancelling.abort();
    one.answer(unavailable(networkFault(signal.reason)));
  };
  return {
    /** Never rejects. */
    add: (item: PreparedItem, signal: AbortSignal): Promise<TargetAnswer> =>
      new Promise((resolve) => {
        const one: Waiting = { item, isAborted: false, answer: resolve };
        const onAbort = () => abandon(one, signal);
        one.answer = (answer) => {
          signal.removeEventListener('abort', onAbort);
          resolve(answer);
        };
        if (signal.aborted) return onAbort();
        signal.addEventListener('abort', onAbort);
        waiting.push(one);
        // Items that start together share a transaction.
        setImmediate(() => void start());
      }),
  };
}

/** Returns the next items, each of another product: a statement can change a row only once. */
function nextBatch(waiting: readonly Waiting[]): Waiting[] {
  const products = new Set<string>();
  const batch: Waiting[] = [];
  let characters = 0;
  for (const one of waiting) {
    const { product, productRow, notificationRow } = one.item;
    if (products.has(product)) continue;
    if (characters > batchCharactersMax || batch.length >= batchItemsMax) break;
    products.add(product);
    characters += productRow.length + (notificationRow?.length ?? 0);
    batch.push(one);
  }
  return batch;
}

interface Session {
  client: pg.Client;
  statements: BatchSql;
}

/** Creates the function that writes a batch over the connection of a sink, which it opens with the first batch. */
export function createWrite(settings: PostgresSettings, sink: { name: string; timeoutMs: number }) {
  let current: Connection | null = null;

  /** The next batch opens a connection, and checks the tables again. */
  const drop = (used: Connection) => {
    if (current === used) current = null;
    used.end();
  };
  const connection = () => {
    if (current !== null) return current;
    const opened = openConnection(settings, sink, () => drop(opened));
    current = opened;
    return opened;
  };
  /** Bisects a batch with values that cannot be stored, so that one item does not fail the others. */
  const writeAll = async (
    items: readonly PreparedItem[],
    signal: AbortSignal,
  ): Promise<TargetAnswer[]> => {
    const used = connection();
    signal.addEventListener('abort', used.destroy);
    try {
      await writeOnce(await used.session, items, sink.timeoutMs);
      return items.map(() => ({ kind: 'acknowledged' }));
    } catch (error) {
      if (isValueError(error) && items.length > 1) {
        const half = Math.ceil(items.length / 2);
        const first = await writeAll(items.slice(0, half), signal);
        return [...first, ...(await writeAll(items.slice(half), signal))];
      }
      if (!isValueError(error)) drop(used);
      return items.map(() => postgresFault(error, settings));
    } finally {
      signal.removeEventListener('abort', used.destroy);
    }
  };
  return {
    write: writeAll,
    /** For a sink without items in progress. */
    close: async () => {
      if (current !== null) drop(current);
    },
  };
}

interface Connection {
  session: Promise<Session>;
  /** Ends it after the running statements. */
  end(): void;
  /** Ends it at once: the server may hang. */
  destroy(): void;
}

/** Connects, and prepares the tables. */
function openConnection(
  settings: PostgresSettings,
  { name, timeoutMs }: { name: string; timeoutMs: number },
  onEnd: () => void,
): Connection {
  let client: pg.Client | null = null;
  let isEnded = false;
  const open = async (): Promise<Session> => {
    const opened = await connect(settings, name);
    client = opened;
    opened.on('end', onEnd);
    if (isEnded) endOf(opened);
    await begin(opened, timeoutMs);
    const found = await prepareTables(opened, settings);
    await opened.query('COMMIT');
    return { client: opened, statements: createBatchSql(found, settings.deleted) };
  };
  const session = open();
  // Reported by each batch.
  session.catch(() => undefined);
  const end = () => {
    isEnded = true;
    if (client !== null) endOf(client);
  };
  return {
    session,
    end,
    destroy: () => {
      end();
      client?.connection.stream.destroy();
    },
  };
}

/** Sends all statements at once. After a failed one, the commit rolls back. */
async function writeOnce(
  { client, statements }: Session,
  items: readonly PreparedItem[],
  timeoutMs: number,
): Promise<void> {
  const results = await Promise.allSettled([
    begin(client, timeoutMs),
    ...statements(items).map(([sql, rows]) => client.query(sql, [rows])),
    client.query('COMMIT'),
  ]);
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

/** Writes items, rolls back, and resolves with the answer: for a test delivery. */
export async function tryWrite(
  items: readonly PreparedItem[],
  settings: PostgresSettings,
  sink: { name: string; timeoutMs: number },
): Promise<TargetAnswer> {
  let client: pg.Client | undefined;
  try {
    client = await connect(settings, sink.name);
    await begin(client, sink.timeoutMs);
    const statements = createBatchSql(await prepareTables(client, settings), settings.deleted);
    for (const [sql, rows] of statements(items)) await client.query(sql, [rows]);
    await client.query('ROLLBACK');
    return { kind: 'acknowledged' };
  } catch (error) {
    return postgresFault(error, settings);
  } finally {
    if (client !== undefined) endOf(client);
  }
}

/** Closes a connection; a running query ends with an error. A server that hangs does not keep the process running. */
function endOf(client: pg.Client): void {
  client.end().catch(() => undefined);
  setTimeout(() => client.connection.stream.destroy(), endMs).unref();
}
