/** Reads pages of the catalogue, of queues and of query results; large ones on a thread. */
import { readEntries } from '../admin/pull-queue.ts';
import { createReadBytes } from '../host/reader-thread.ts';
import { readListing } from '../reconcile/read-listing.ts';

export const pageReaders = { readEntries, readListing };

export function createReadPage() {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return createReadBytes(new URL(`./page-thread.${extension}`, import.meta.url), pageReaders);
}
