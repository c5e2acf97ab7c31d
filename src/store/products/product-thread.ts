/** The thread that answers questions about products, so that no search delays an answer of the receiver. */
import { parentPort, workerData } from 'node:worker_threads';
import { AppError } from '../../domain/app-error.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { createReaderConnection } from '../reader-connection.ts';
import { sentError } from '../sent-error.ts';
import { createIndexConnection } from './index-connection.ts';
import type { ProductRequest } from './product-messages.ts';
import {
  countProducts,
  explainSearch,
  indexState,
  type ProductDatabases,
  productPage,
} from './product-questions.ts';

type Question = Exclude<ProductRequest, { op: 'close' }>;

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const { dataDir } = workerData as { dataDir: string };
const post = (message: ThreadMessage) => port.postMessage(message);
let isClosing = false;

/** Lets other questions be answered; a count that is under way ends with the thread. */
async function giveWay(): Promise<void> {
  await new Promise<void>((resolve) => setImmediate(resolve));
  if (isClosing) throw new AppError('unavailable', 'The index is closed.');
}

try {
  const log = createReaderConnection(dataDir);
  const index = createIndexConnection(dataDir);
  const answer = async (request: Question): Promise<Settled> => {
    const { id } = request;
    try {
      return {
        id,
        value: await perform({ index: index.database(), log: log.database() }, request),
      };
    } catch (error) {
      return { id, error: sentError(error) };
    }
  };
  port.on('message', (request: ProductRequest) => {
    if (request.op !== 'close') {
      void answer(request).then((settled) => post({ kind: 'settled', settled: [settled] }));
      return;
    }
    isClosing = true;
    index.close();
    log.close();
    post({ kind: 'settled', settled: [{ id: request.id, value: undefined }] });
    port.close();
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
      return countProducts(databases, request.query, giveWay);
    case 'explain':
      return explainSearch(databases, request.query);
    case 'state':
      return indexState(databases);
  }
}
