/** Writes items to PostgreSQL in batches: items that arrive during a transaction share the next one. */
import { setImmediate } from 'node:timers/promises';
import type pg from 'pg';
import { networkFault } from '../http/bounded-fetch.ts';
import {
  begin,
  connect,
  isValueError,
  type PostgresSettings,
  postgresFault,
  prepareTables,
} from './postgres-connection.ts';
import { type BatchSql, createBatchSql, type PreparedItem } from './postgres-rows.ts';
import { type TargetAnswer, unavailable } from './target.ts';

/** Maximum size of a batch, in characters, after which no other item is added. */
const batchCharactersMax = 8 * 2 ** 20;

/** Half of the default concurrency: while one batch is written, the next one is read from the log. */
const batchItemsMax = 128;

/** Time in which a server must close a connection. */
const endMs = 1_000;

interface Waiting {
  item: PreparedItem;
  answer: (answer: TargetAnswer) => void;
  isAborted: boolean;
}

/**
 * Creates the writer of a sink. One transaction runs at a time. An item whose signal is aborted is answered at once; a
 * transaction of which nobody waits any longer is cancelled with its connection, because the server may hang.
 */
export function createBatches(
  write: (items: readonly PreparedItem[], signal: AbortSignal) => Promise<TargetAnswer[]>,
) {
  let waiting: Waiting[] = [];
  let isRunning = false;
  let current: { batch: readonly Waiting[]; cancelling: AbortController } | null = null;

  const runAll = async () => {
    // Items that start together share the first transaction, too.
    await setImmediate();
    while (waiting.length > 0) {
      const batch = nextBatch(waiting);
      waiting = waiting.filter((one) => !batch.includes(one));
      const cancelling = new AbortController();
      current = { batch, cancelling };
      const answers = await write(
        batch.map(({ item }) => item),
        cancelling.signal,
      );
      current = null;
      for (const [i, { answer }] of batch.entries()) {
        answer(answers[i] ?? unavailable('the transaction has no result'));
      }
    }
    isRunning = false;
  };
  const abandon = (one: Waiting, signal: AbortSignal) => {
    one.isAborted = true;
    waiting = waiting.filter((other) => other !== one);
    if (current?.batch.every(({ isAborted }) => isAborted)) current.cancelling.abort();
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
        if (isRunning) return;
        isRunning = true;
        void runAll();
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
  let session: Session | null = null;
  let connected: pg.Client | null = null;

  const open = async (signal: AbortSignal): Promise<Session> => {
    const client = await connect(settings, sink.name);
    if (signal.aborted) endOf(client);
    connected = client;
    client.on('end', () => {
      if (session?.client === client) session = null;
    });
    await begin(client, sink.timeoutMs);
    const found = await prepareTables(client, settings);
    await client.query('COMMIT');
    return { client, statements: createBatchSql(found, settings.deleted) };
  };
  /** The next batch opens a connection, and checks the tables again. */
  const drop = () => {
    if (connected !== null) endOf(connected);
    [session, connected] = [null, null];
  };
  /** Bisects a batch with values that cannot be stored, so that one item does not fail the others. */
  const writeAll = async (
    items: readonly PreparedItem[],
    signal: AbortSignal,
  ): Promise<TargetAnswer[]> => {
    try {
      session ??= await open(signal);
      await writeOnce(session, items, sink.timeoutMs);
      return items.map(() => ({ kind: 'acknowledged' }));
    } catch (error) {
      if (isValueError(error) && items.length > 1) {
        const half = Math.ceil(items.length / 2);
        const first = await writeAll(items.slice(0, half), signal);
        return [...first, ...(await writeAll(items.slice(half), signal))];
      }
      if (!isValueError(error)) drop();
      return items.map(() => postgresFault(error, settings));
    }
  };
  return {
    write: async (items: readonly PreparedItem[], signal: AbortSignal): Promise<TargetAnswer[]> => {
      // The server may hang: its running query would delay an orderly end.
      const cancel = () => connected?.connection.stream.destroy();
      signal.addEventListener('abort', cancel);
      const answers = await writeAll(items, signal);
      signal.removeEventListener('abort', cancel);
      return answers;
    },
    /** For a sink without items in progress. */
    close: async () => drop(),
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
