/** A thread whose answers are nested too deeply for the receiving thread. */
import { parentPort } from 'node:worker_threads';

parentPort?.on('message', ({ id }: { id: number }) => {
  let value: unknown = 1;
  for (let level = 0; level < 6_000; level += 1) value = [value];
  parentPort?.postMessage({ kind: 'settled', id, value });
});
