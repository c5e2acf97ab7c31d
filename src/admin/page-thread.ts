/** The thread that reads large pages. */
import { serveThread } from '../core/host/serve-thread.ts';
import { pageReaders } from './page-readers.ts';

const operations = Object.fromEntries(
  Object.entries(pageReaders).map(([name, read]) => [
    name,
    (_: undefined, bytes: Uint8Array, options: never) => ({ result: read(bytes, options), bytes }),
  ]),
);

export default serveThread(() => ({
  operations,
  context: () => undefined,
  // The bytes go back to the caller.
  moved: (reading) => [(reading as { bytes: Uint8Array<ArrayBuffer> }).bytes.buffer],
  close: () => undefined,
}));
