/** Messages of notifications for programs that read them: from the feed, and from `earshot tail`. */
import { isAppError } from '../../core/terms/app-error.ts';
import type { NotificationLog, NotificationRow } from '../../core/terms/ports.ts';
import type { ProductRecord } from '../../filter/values.ts';
import { compileMatcher, documentOf, type MessageRules, recordOf } from './document.ts';
import { type MessageSettings, type MessageUrls, messageWriter } from './formats.ts';

/** Value of `sink` in the documents. */
const sink = 'feed';

export type ReadMessage = (row: NotificationRow) => Promise<string | null>;

interface MessageSources {
  log: Pick<NotificationLog, 'body'>;
  urls: MessageUrls;
  nowUs: () => number;
  /** Returns the text of a message, which readers with the same settings may share. */
  share?: (key: string, write: () => Promise<string>) => Promise<string>;
}

/**
 * Returns the function that reads the message of a notification, as one line of JSON. It resolves with null for a
 * notification that the rules do not select, or that was pruned meanwhile, and rejects with `unavailable` when the log
 * cannot be read. Throws `invalid` for an invalid filter.
 */
export function createMessageReader(
  request: MessageRules & MessageSettings,
  { log, urls, nowUs, share = (_key, write) => write() }: MessageSources,
): ReadMessage {
  const matches = compileMatcher(request, log);
  const write = messageWriter(request, { urls, nowUs });
  const { format, stacIds } = request;

  const readRecord = async (row: NotificationRow): Promise<ProductRecord | null> => {
    try {
      return recordOf(await log.body(row.position), row);
    } catch (error) {
      // A damaged body must not stop the reader.
      if (isAppError(error) && error.facts.isDamaged !== true) throw error;
      return null;
    }
  };
  const writeText = async (row: NotificationRow, record: ProductRecord | null) => {
    const document = documentOf({ row, record, sink, replayId: null });
    // The record may have values that a format cannot write.
    const { text } = await write(document).catch(() => write({ ...document, value: null }));
    return text;
  };
  return async (row) => {
    let record: ReturnType<typeof readRecord> | undefined;
    const read = () => {
      record ??= readRecord(row);
      return record;
    };
    try {
      if ((await matches(row, read)) !== 'selected') return null;
      const key = `${row.position} ${format} ${stacIds}`;
      return await share(key, async () => writeText(row, await read()));
    } catch (error) {
      if (isAppError(error, 'not_found')) return null;
      throw error;
    }
  };
}
