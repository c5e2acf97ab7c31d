/** Keeps the index beside the receiver up to date, and opens the private listener that answers from it. */
import type { ServeConfig } from '../config/config.ts';
import type { Products } from '../domain/products.ts';
import { startIndexing } from '../store/products/index-maintenance.ts';
import { openProducts } from '../store/products/products.ts';
import { createClosers } from './closers.ts';
import type { Io } from './io.ts';
import { type ConsoleParts, serveConsole } from './serve-console.ts';

export interface ServedQueries {
  products: Products;
  /** Such as `http://127.0.0.1:8080`; null where there is no private listener. */
  consoleUrl: string | null;
  close(): Promise<void>;
}

/** What fails here is told to the log: intake goes on without it. */
export async function serveQueries(
  { dataDir, diskReserveBytes, console, index }: ServeConfig,
  asked: Omit<ConsoleParts, 'products'>,
  io: Pick<Io, 'nowUs' | 'newId'>,
): Promise<ServedQueries> {
  const closers = createClosers();
  if (index) {
    const place = { dataDir, diskReserveBytes };
    const indexing = startIndexing({ ...place, log: asked.log, besideIntake: true });
    closers.add(() => indexing.stop());
  }
  const products = openProducts(dataDir);
  closers.add(() => products.close());
  const parts = { ...asked, products };
  const served = console === null ? null : await serveConsole(console, parts, io);
  if (served !== null) closers.add(() => served.close());
  return { products, consoleUrl: served?.url ?? null, close: closers.closeAll };
}
