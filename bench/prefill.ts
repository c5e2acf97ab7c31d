/** Fills earshot's own database with the notifications of the load, in other products' names. */
import { type BodyTemplate, writeIds } from './bodies.ts';
import { type LogEntry, writeLog } from './log-writer.ts';
import { type AckIdForm, ackIdOf, productIdOf } from './request-ids.ts';

/** What to write. */
export interface PrefillOptions {
  readonly rows: number;
  readonly ackIdForm: AckIdForm;
  /** Made for the same form. */
  readonly templates: readonly BodyTemplate[];
  /** Cut or pad bodies to this size; undefined leaves them as they are. */
  readonly bodyBytes?: number | undefined;
  /** The run number that the rows' ids are made of. */
  readonly run: number;
  /** Called now and then with the number of rows written so far. */
  onProgress?(rows: number): void;
}

const firstReceivedAtUs = Date.UTC(2026, 0, 1) * 1_000;
const intervalUs = 400_000;

/**
 * Inserts the rows into the file of a stopped earshot that has created its tables and stored nothing.
 * Rejects as `writeLog` does.
 */
export async function prefillDatabase(file: string, options: PrefillOptions): Promise<void> {
  await writeLog(file, createEntries(options), options.onProgress);
}

function* createEntries(options: PrefillOptions): Generator<LogEntry> {
  for (let index = 0; index < options.rows; index += 1) yield createEntry(options, index);
}

function createEntry(options: PrefillOptions, index: number): LogEntry {
  const template = options.templates[index % options.templates.length];
  if (template === undefined) throw new Error('there are no templates');
  const ackId = ackIdOf(options.ackIdForm, options.run, index);
  const productId = productIdOf(options.run, index);
  const notificationDateUs = firstReceivedAtUs + index * intervalUs;
  return {
    ackId,
    productId,
    productName: template.productName,
    event: template.event,
    subscriptionId: template.subscriptionId,
    notificationDateUs,
    receivedAtUs: notificationDateUs + 50_000_000,
    body: bodyOf(template, { ackId, productId }, options.bodyBytes),
  };
}

function bodyOf(
  template: BodyTemplate,
  ids: { ackId: string; productId: string },
  bodyBytes: number | undefined,
): Buffer {
  const bytes = Buffer.from(template.bytes);
  writeIds(bytes, 0, template, ids);
  if (bodyBytes === undefined) return bytes;
  // JSON may end in any amount of white space; a body cut short is no longer JSON, only its size.
  return bodyBytes <= bytes.length
    ? bytes.subarray(0, bodyBytes)
    : Buffer.concat([bytes, Buffer.alloc(bodyBytes - bytes.length, ' ')]);
}
