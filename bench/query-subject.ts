/** A data folder that can be asked: the index itself, and a server of its own that answers over HTTP. */
import { setTimeout as delay } from 'node:timers/promises';
import type { IndexState, Products } from '../src/domain/products.ts';
import { openProducts } from '../src/store/products/products.ts';
import type { Cleanup } from './cleanup.ts';
import type { Endpoint } from './endpoint.ts';
import { readMemory } from './process-status.ts';
import type { QueryData } from './query-data.ts';
import { createHttpAsk } from './query-timing.ts';
import { freePort, startServer } from './servers.ts';

/** What can be asked, until it is closed. */
export interface QuerySubject {
  readonly data: QueryData;
  readonly state: IndexState;
  readonly products: Products;
  readonly http: ReturnType<typeof createHttpAsk>;
  /** Most memory of the server, bytes; null where it cannot be read. */
  serverPeakBytes(): number | null;
  close(): Promise<void>;
}

const readyTimeoutMs = 30_000;
const pollMs = 50;

/** Opens the index, and starts a server on the folder. */
export async function openSubject(
  { endpoint, cleanup }: { endpoint: Endpoint; cleanup: Cleanup },
  data: QueryData,
): Promise<QuerySubject> {
  const consolePort = await freePort();
  const server = await startServer('earshot', {
    ...{ endpoint, cleanup, dataFolder: data.folder },
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}` },
  });
  const consoleUrl = `http://127.0.0.1:${consolePort}`;
  await waitUntilAnswered(consoleUrl);
  const products = openProducts(data.folder);
  const http = createHttpAsk(consoleUrl);
  return {
    ...{ data, products, http, state: await products.indexState() },
    serverPeakBytes: () => readMemory(server.processId)?.peakResidentBytes ?? null,
    async close() {
      http.close();
      await products.close();
      await server.stop();
    },
  };
}

/** The private listener opens a moment after the receiver. */
async function waitUntilAnswered(consoleUrl: string): Promise<void> {
  const giveUpMs = performance.now() + readyTimeoutMs;
  for (;;) {
    const answer = await fetch(`${consoleUrl}/odata/v1/Products?$top=1`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 200) return;
    if (performance.now() > giveUpMs) throw new Error('the private listener did not become ready');
    await delay(pollMs);
  }
}
