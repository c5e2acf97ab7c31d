/** The thread that answers questions about products, so that no search delays an answer of the receiver. */
import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../domain/app-error.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { createReaderConnection } from '../reader-connection.ts';
import { sentError } from '../sent-error.ts';
import { createIndexConnection } from './index-connection.ts';
import { measureDelays } from './product-delays.ts';
import { indexedPosition, isDamage } from './product-file.ts';
import type { ProductRequest } from './product-messages.ts';
import {
  countProducts,
  explainSearch,
  indexState,
  type ProductDatabases,
  productPage,
  pushedEvents,
} from './product-questions.ts';

type Question = Exclude<ProductRequest, { op: 'close' }>;

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const { dataDir } = workerData as { dataDir: string };
const post = (message: ThreadMessage) => port.postMessage(message);
/** The questions that are being answered. */
const underWay = new Set<number>();

/** Lets other questions be answered; ends the one that was given up meanwhile. */
async function giveWay(question: number): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  if (!underWay.has(question)) throw new AppError('cancelled', 'The question was given up.');
}

try {
  const log = createReaderConnection(dataDir);
  const index = createIndexConnection(dataDir);
  const answer = async (request: Question): Promise<Settled> => {
    const { id } = request;
    underWay.add(id);
    try {
      const databases = { ...index.open(), log: log.database() };
      return { id, value: await perform(databases, request) };
    } catch (error) {
      return { id, error: sentError(isDamage(error) ? damaged(error) : error) };
    } finally {
      underWay.delete(id);
    }
  };
  const answers = new Set<Promise<void>>();
  const close = async (id: number) => {
    underWay.clear();
    // No connection is closed while a statement of it still runs.
    await Promise.all(answers);
    index.close();
    log.close();
    post({ kind: 'settled', settled: [{ id, value: undefined }] });
    port.close();
  };
  port.on('message', (request: ProductRequest) => {
    if (request.op === 'close') return void close(request.id);
    const answered = answer(request).then((settled) => {
      answers.delete(answered);
      post({ kind: 'settled', settled: [settled] });
    });
    answers.add(answered);
  });
  post({ kind: 'started' });
} catch (error) {
  post({ kind: 'failed', error: sentError(error) });
}

function perform(databases: ProductDatabases, request: Question): unknown {
  switch (request.op) {
    case 'page':
      return productPage(databases, request.query, request.rowsMax);
    case 'count':
      return countProducts(databases, request.query, () => giveWay(request.id));
    case 'explain':
      return explainSearch(databases, request.query);
    case 'state':
      return indexState(databases);
    case 'position':
      return indexedPosition(databases);
    case 'events':
      return pushedEvents(databases, request.question);
    case 'delays':
      return measureDelays(databases, request.question, () => giveWay(request.id));
    case 'cancel':
      return void underWay.delete(request.givenUp);
  }
}

function damaged(cause: unknown): AppError {
  return new AppError(
    'unavailable',
    'The product index is damaged. Run `earshot index rebuild`: it is made anew from the log, which is safe.',
    { cause },
  );
}
