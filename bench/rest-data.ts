/** Logs and pushes for the benchmark at rest. */
import Database from 'better-sqlite3';
import { currentProductFile } from '../src/features/products/index-file/product-file.ts';
import { sinkReader } from '../src/features/sinks/terms.ts';
import { summaryReader } from '../src/features/summary/terms.ts';
import { type LogEntry, writeLog } from './log-writer.ts';
import {
  ackIdOf,
  createBodyTemplate,
  createBodyTemplates,
  productIdOf,
  writeIds,
} from './notifications.ts';
import { databaseFile } from './servers.ts';

/** Runs of ids: of the log, and of single pushes. */
const [logRun, pushRun] = [1, 2];
let pushes = 0;

/** Returns the body of a push that was not sent before. */
export function pushOf(): Buffer {
  const [template] = createBodyTemplates(1);
  if (template === undefined) throw new Error('there are no templates');
  pushes += 1;
  const body = Buffer.from(template.bytes);
  const [ackId, productId] = [ackIdOf(pushRun, pushes), productIdOf(pushRun, pushes)];
  writeIds(body, 0, template, { ackId, productId });
  return body;
}

/**
 * Fills the empty log of a stopped receiver with short bodies, and marks all rows as indexed, delivered to the sink and
 * considered for summaries: neither bodies nor index affect a start, and real ones take minutes.
 */
export async function writeShortLog(
  dataFolder: string,
  rows: number,
  onProgress: (written: number) => void,
): Promise<void> {
  await writeLog(databaseFile(dataFolder), shortEntries(rows), onProgress);
  const index = new Database(currentProductFile(dataFolder) ?? '', { fileMustExist: true });
  index.prepare('UPDATE progress SET position = ?, mark = NULL').run(rows);
  index.close();
  const log = new Database(databaseFile(dataFolder), { fileMustExist: true });
  const move = log.prepare('INSERT OR REPLACE INTO reader_cursor VALUES (?, ?, ?)');
  for (const reader of [sinkReader('hook'), summaryReader]) {
    move.run(reader, rows, Date.now() * 1_000);
  }
  log.close();
}

const intervalUs = 400_000;

function* shortEntries(rows: number): Generator<LogEntry> {
  const firstUs = Date.now() * 1_000 - (rows + 1_000) * intervalUs;
  const product = { Id: productIdOf(logRun, 0), Name: 'S2A_MSIL2A_20260101T000000' };
  const facts = {
    event: 'created',
    subscriptionId: productIdOf(logRun, 1),
    notificationDate: new Date(firstUs / 1_000).toISOString(),
  };
  const template = createBodyTemplate(product, facts);
  for (let row = 0; row < rows; row += 1) {
    const [ackId, productId] = [ackIdOf(logRun, row), productIdOf(logRun, row)];
    const body = Buffer.from(template.bytes);
    writeIds(body, 0, template, { ackId, productId });
    const notificationDateUs = firstUs + row * intervalUs;
    yield {
      ...{ ackId, productId, productName: product.Name, notificationDateUs, body },
      ...{ event: facts.event, subscriptionId: facts.subscriptionId },
      receivedAtUs: notificationDateUs + 50_000_000,
    };
  }
}
