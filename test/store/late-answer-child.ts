/** A thread that answers a call `wait` only after a call `release`. */
import { parentPort } from 'node:worker_threads';

const waiting: number[] = [];
parentPort?.on('message', ({ id, op }: { id: number; op: string }) => {
  if (op === 'wait') return void waiting.push(id);
  for (const one of [...waiting.splice(0), id]) {
    parentPort?.postMessage({ kind: 'settled', id: one, value: op });
  }
  if (op === 'close') parentPort?.close();
});
