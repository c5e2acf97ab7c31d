/** A receiver with many products of the last days, as a process, for the benchmark of the web page. */
import { randomUUID } from 'node:crypto';
import { hourUs } from '../src/core/terms/time-units.ts';
import { openStore } from '../test/helpers/store.ts';
import type { BenchContext } from './harness.ts';
import { freePort } from './processes.ts';
import { prepareQueryData, slotMs } from './query-data.ts';
import { waitUntilAnswered } from './query-measure.ts';
import { type Endpoint, startServer } from './servers.ts';

export interface LargeReceiver {
  readonly products: number;
  /** Address of the web page, without a slash at the end. */
  readonly url: string;
  readonly processId: number;
  stop(): Promise<void>;
}

/** Opens a receiver with products until now, at the rate of the catalogue; reuses data in the folder. */
export async function openLarge(
  { progress, cleanup }: Pick<BenchContext, 'progress' | 'cleanup'>,
  { folder, products, endpoint }: { folder: string; products: number; endpoint: Endpoint },
): Promise<LargeReceiver> {
  const data = await prepareQueryData(folder, products, progress, Date.now() - products * slotMs);
  await addCoverage(data.folder, products);
  const port = await freePort();
  const server = await startServer('earshot', {
    ...{ endpoint, cleanup, dataFolder: data.folder },
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilAnswered(url);
  return { products, url, processId: server.processId, stop: server.stop };
}

/** Registers the subscription of the products, and saves the coverage of each hour. */
async function addCoverage(dataDir: string, products: number): Promise<void> {
  const nowUs = Date.now() * 1_000;
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  const name = 'bench';
  try {
    if ((await store.administration.registrations()).length > 0) return;
    const save = {
      ...{ name, subscriptionId: randomUUID(), filter: "Collection/Name eq 'SENTINEL-2'" },
      ...{ type: 'push' as const, events: ['created', 'deleted'] as const },
      ...{ status: 'running' as const },
      ...{
        unfinished: false,
        earlierIds: [],
        origin: 'flags' as const,
        credentialsDigest: null,
        changedByPerson: false,
        reported: [],
      },
      ...{ activityAtUs: nowUs, notifiedAtUs: nowUs, runningSeenAtUs: nowUs, pausedSeenAtUs: null },
    };
    const hours = Math.ceil((products * slotMs * 1_000) / hourUs);
    const lastUs = Math.floor(nowUs / hourUs) * hourUs - 2 * hourUs;
    const coverage = Array.from({ length: hours }, (_, i) => {
      const hour = { subscription: name, hourUs: lastUs - i * hourUs, comparedAtUs: nowUs };
      return (['created', 'deleted'] as const).map((event) => ({
        ...{ ...hour, event, expected: 40, pushed: 40, late: 0, recovered: 0, missing: 0 },
      }));
    });
    for (const some of chunked(coverage.flat())) await store.completeness.saveCoverage(some);
    // Last: its presence shows that the coverage is complete.
    await store.administration.commit({ save, history: [] });
  } finally {
    await store.close();
  }
}

/** The store saves a limited number of hours at once. */
function chunked<Row>(rows: readonly Row[]): Row[][] {
  const size = 500;
  const count = Math.ceil(rows.length / size);
  return Array.from({ length: count }, (_, i) => rows.slice(i * size, (i + 1) * size));
}
