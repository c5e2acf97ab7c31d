/** Composes the client of the catalogue's query results. */

import { createCatalogueListing, type ProductListing } from '../../admin/listing.ts';
import type { ListingRetry } from '../../admin/listing-requests.ts';
import { createReadPage } from '../../admin/page-readers.ts';
import { createAccessTokens } from '../../admin/session.ts';
import { createServiceClock, createStoppableFetch, type Io, pause } from '../../core/cli/io.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { ReconcileConfig } from './settings.ts';

export interface OpenedListing {
  listing: ProductListing;
  /** Time of the catalogue, from its latest answer: event dates are in its clock. */
  nowUs: () => number;
}

/**
 * Creates the client without sending a request. `pageSizes`: values of `$top`, largest first. Calls `onRetry` for each
 * failed attempt that is retried.
 */
export function openListing(
  {
    account,
    dataDir,
    catalogueUrl,
    requestsPerMinute,
    pageSizes,
  }: ReconcileConfig & { pageSizes?: readonly number[] },
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>,
  onRetry: (trouble: ListingRetry) => void,
): OpenedListing {
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const acquireLock = createAcquireLock(dataDir);
  const tokens =
    account === null ? null : createAccessTokens({ account, dataDir, ...own, acquireLock });
  const { nowUs, fetch } = createServiceClock(own);
  const listing = createCatalogueListing({
    catalogueUrl,
    tokens,
    fetch,
    random: io.random,
    requestsPerMinute,
    readPage: createReadPage(),
    nowMs: () => io.nowUs() / 1_000,
    pause,
    onRetry,
    ...(pageSizes === undefined ? {} : { sizes: pageSizes }),
  });
  return { listing, nowUs };
}

/** Error with code `configuration` if nothing can be compared. */
export function neverRegistered(): AppError {
  const message = 'No subscription was ever registered in this data directory.';
  return new AppError('configuration', message, { advice: 'Run `earshot register` first.' });
}
