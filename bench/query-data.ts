/** The data folders that queries are measured on: a log of generated products, and its index. */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { rebuildIndex } from '../src/store/products/index-maintenance.ts';
import { openStore } from '../src/store/store.ts';
import { writeLog } from './log-writer.ts';
import { readMemory } from './process-status.ts';
import { createProductLog } from './product-log.ts';
import type { Progress } from './progress.ts';

/** What a folder holds and how long it took to make; sizes in bytes. */
export interface QueryData {
  readonly folder: string;
  readonly products: number;
  readonly notifications: number;
  /** Generating them and writing the log. */
  readonly fillSeconds: number;
  /** Building the index with nothing else running. */
  readonly indexSeconds: number;
  readonly notificationsPerSecond: number;
  readonly logBytes: number;
  readonly indexBytes: number;
  /** Most memory of this process until then; null where it cannot be read. */
  readonly peakResidentBytes: number | null;
}

/** Written last: a folder without it is incomplete. */
const summaryName = 'query-data.json';

/** Makes the data in a folder, or takes what an earlier run has left there complete. */
export async function prepareQueryData(
  folder: string,
  products: number,
  progress: Progress,
): Promise<QueryData> {
  const summaryFile = join(folder, summaryName);
  if (existsSync(summaryFile)) {
    // Written below, by this program.
    return { ...(JSON.parse(readFileSync(summaryFile, 'utf8')) as QueryData), folder };
  }
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const data = await createQueryData(folder, products, progress);
  writeFileSync(summaryFile, `${JSON.stringify(data, null, 2)}\n`);
  return data;
}

async function createQueryData(
  folder: string,
  products: number,
  progress: Progress,
): Promise<QueryData> {
  const store = await openStore({ dataDir: folder, nowUs: () => Date.now() * 1_000 });
  await store.close();
  const logFile = join(folder, 'earshot.db');
  progress.show(`${products} products: making the first day`);
  let startMs = performance.now();
  await writeLog(logFile, createProductLog(products), (written) =>
    progress.show(`${products} products: ${written} notifications written`),
  );
  const fillSeconds = secondsSince(startMs);
  startMs = performance.now();
  const { indexedPosition } = await rebuildIndex({
    dataDir: folder,
    onProgress: (done) =>
      progress.show(
        `${products} products: ${done.indexedPosition} of ${done.lastPosition} indexed`,
      ),
  });
  const indexSeconds = secondsSince(startMs);
  return {
    ...{ folder, products, notifications: indexedPosition, fillSeconds, indexSeconds },
    notificationsPerSecond: indexedPosition / indexSeconds,
    logBytes: statSync(logFile).size,
    indexBytes: statSync(join(folder, 'products-1.db')).size,
    peakResidentBytes: readMemory(process.pid)?.peakResidentBytes ?? null,
  };
}

function secondsSince(startMs: number): number {
  return (performance.now() - startMs) / 1_000;
}
