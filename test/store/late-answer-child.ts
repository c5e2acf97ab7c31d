/** A thread that answers a call `wait` only after a call `release`. */
import { parentPort } from 'node:worker_threads';

const waiting: number[] = [];
parentPort?.on('message', ({ id, op }: { id: number; op: string }) => {
  if (op === 'wait') return void waiting.push(id);
  const settled = [...waiting.splice(0), id].map((one) => ({ id: one, value: op }));
  parentPort?.postMessage({ kind: 'settled', settled });
  if (op === 'close') parentPort?.close();
});
