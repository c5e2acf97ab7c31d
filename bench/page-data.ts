/** A receiver with many products of the last days, as a process, for the benchmark of the web page. */
import { randomUUID } from 'node:crypto';
import { hourUs } from '../src/core/terms/dates.ts';
import { openStore } from '../test/helpers/store.ts';
import type { BenchContext } from './harness.ts';
import { freePort } from './processes.ts';
import { prepareQueryData, slotMs } from './query-data.ts';
import { waitUntilAnswered } from './query-measure.ts';
import { registration, saveRegistration } from './registration.ts';
import { type Endpoint, startServer } from './servers.ts';

export interface LargeReceiver {
  readonly products: number;
  /** Address of the web page, without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Opens a receiver with products until now, at the rate of the catalogue. */
export async function openLarge(
  { progress, cleanup }: BenchContext,
  { folder, products, endpoint }: { folder: string; products: number; endpoint: Endpoint },
): Promise<LargeReceiver> {
  await prepareQueryData(folder, products, progress, Date.now() - products * slotMs);
  await addCoverage(folder, products);
  const port = await freePort();
  const { stop } = await startServer('earshot', {
    ...{ endpoint, cleanup, dataFolder: folder },
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilAnswered(url);
  return { products, url, stop };
}

/** The store saves a limited number of hours at once. */
const hoursTogether = 500;

/** Registers the subscription of the products, and saves the coverage of each hour. */
async function addCoverage(dataDir: string, products: number): Promise<void> {
  const [nowUs, name, events] = [Date.now() * 1_000, 'bench', ['created', 'deleted'] as const];
  const filter = "Collection/Name eq 'SENTINEL-2'";
  const more = { events, filter, subscriptionId: randomUUID() };
  await saveRegistration(dataDir, registration(name, nowUs, more));
  const hours = Math.ceil((products * slotMs * 1_000) / hourUs);
  const lastUs = Math.floor(nowUs / hourUs) * hourUs - 2 * hourUs;
  const coverage = Array.from({ length: 2 * hours }, (_, i) => ({
    ...{ subscription: name, event: events[i % 2 === 0 ? 0 : 1], comparedAtUs: nowUs },
    hourUs: lastUs - Math.floor(i / 2) * hourUs,
    ...{ expected: 40, pushed: 40, late: 0, recovered: 0, missing: 0 },
  }));
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  for (let i = 0; i < coverage.length; i += hoursTogether) {
    await store.completeness.saveCoverage(coverage.slice(i, i + hoursTogether));
  }
  await store.close();
}
