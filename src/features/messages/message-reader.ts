/** Messages of notifications for programs that read them: from the feed, and from `earshot tail`. */
import { isAppError } from '../../core/terms/app-error.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import type { ProductRecord } from '../../filter/values.ts';
import { compileMatcher, documentOf, type MessageRules, recordOf } from './document.ts';
import { type MessageSettings, type MessageUrls, messageWriter } from './formats.ts';

/** Value of `sink` in the documents. */
const sink = 'feed';

interface MessageSources {
  log: Pick<NotificationLog, 'body'>;
  urls: MessageUrls;
  nowUs: () => number;
  /** Returns the text of a message, which readers with the same settings may share. */
  share?: (key: string, write: () => Promise<string>) => Promise<string>;
}

/**
 * Creates the reader of messages. Its functions reject with `unavailable` when the log cannot be read. Throws `invalid` for
 * an invalid filter.
 */
export function createMessageReader(
  request: MessageRules & MessageSettings,
  { log, urls, nowUs, share = (_key, write) => write() }: MessageSources,
) {
  const matches = compileMatcher(request, log);
  const write = messageWriter(request, { urls, nowUs });
  const { format, stacIds } = request;

  const selects = async (row: NotificationRow, read: ReadRecord) =>
    (await matches(row, read)) === 'selected';
  const writeText = async (row: NotificationRow, record: ProductRecord | null) => {
    const document = documentOf({ row, record, sink, replayId: null });
    // The record may have values that a format cannot write.
    const { text } = await write(document).catch(() => write({ ...document, value: null }));
    return text;
  };
  return {
    /** Returns true for a notification that the rules select, false for one that was pruned meanwhile. */
    selects: (row: NotificationRow): Promise<boolean> =>
      unlessPruned(selects(row, recordReader(log, row)), false),
    /** Returns the message as one line of JSON; null for a notification that is not selected. */
    read: (row: NotificationRow): Promise<string | null> => {
      const readRecord = recordReader(log, row);
      const read = async () => {
        if (!(await selects(row, readRecord))) return null;
        const key = `${row.position} ${format} ${stacIds}`;
        return share(key, async () => writeText(row, await readRecord()));
      };
      return unlessPruned(read(), null);
    },
  };
}

type ReadRecord = () => Promise<ProductRecord | null>;

/** Returns the function that reads a record once; null for a damaged body, which must not stop a reader. */
function recordReader(log: Pick<NotificationLog, 'body'>, row: NotificationRow): ReadRecord {
  const read = async () => {
    try {
      return recordOf(await log.body(row.position), row);
    } catch (error) {
      if (isAppError(error) && error.facts.isDamaged !== true) throw error;
      return null;
    }
  };
  let record: Promise<ProductRecord | null> | undefined;
  return () => {
    record ??= read();
    return record;
  };
}

async function unlessPruned<Value>(read: Promise<Value>, otherwise: Value): Promise<Value> {
  try {
    return await read;
  } catch (error) {
    if (isAppError(error, 'not_found')) return otherwise;
    throw error;
  }
}

export type MessageReader = ReturnType<typeof createMessageReader>;
