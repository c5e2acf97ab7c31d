/** The thread that compacts: it has a writing connection of its own, and whoever takes notifications in comes first. */
import { parentPort, workerData } from 'node:worker_threads';
import { type DataPlace, requireSpareRoom } from '../disk-limit.ts';
import { lowerPriority } from '../lower-priority.ts';
import type { Settled, ThreadMessage } from '../messages.ts';
import { giveBack, usualStepMs } from '../pruning/prune-writer.ts';
import { sentError } from '../sent-error.ts';
import { createWriterConnection } from '../writer-connection.ts';
import type { CompactRequest } from './compact-messages.ts';
import { createCompactStep } from './compact-step.ts';

if (parentPort === null) throw new Error('This file runs as a thread of the store.');
const port = parentPort;
// Given by the store's own code, on the other side of the thread.
const place = workerData as DataPlace;
const post = (message: ThreadMessage) => port.postMessage(message);
const connection = createWriterConnection(place.dataDir);
const step = createCompactStep(connection);

lowerPriority();
port.on('message', (request: CompactRequest) => {
  post({ kind: 'settled', settled: [answer(request)] });
  if (request.op === 'close') port.close();
});
post({ kind: 'started' });

function answer(request: CompactRequest): Settled {
  try {
    return { id: request.id, value: perform(request) };
  } catch (error) {
    return { id: request.id, error: sentError(error) };
  }
}

function perform(request: CompactRequest): unknown {
  switch (request.op) {
    case 'step':
      // A person who asks for it on a disk that is nearly full gets it: it frees more than it takes.
      if (request.besideIntake) requireSpareRoom(place, 'Compacting');
      return step();
    case 'give-back':
      return connection.transact(({ database }) =>
        giveBack(database, request.freeShare, usualStepMs),
      );
    case 'checkpoint':
      return connection.checkpoint();
    case 'close':
      return connection.close();
  }
}
