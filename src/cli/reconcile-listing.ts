/** Composes what asks the catalogue for its lists. */

import { createAccessTokens } from '../admin/access-tokens.ts';
import type { ReconcileConfig } from '../config/config.ts';
import { AppError } from '../domain/app-error.ts';
import { createCatalogueListing } from '../reconcile/catalogue-listing.ts';
import type { ListingRetry } from '../reconcile/listing-requests.ts';
import type { ProductListing } from '../reconcile/tasks.ts';
import { createAcquireLock } from '../store/engine/locks.ts';
import { createServiceClock, createStoppableFetch, type Io, pause } from './io.ts';

export interface OpenedListing {
  listing: ProductListing;
  /** The catalogue's time, as it said last: the dates of events are its own. */
  nowUs: () => number;
}

/** Opens nothing and asks nobody. `onRetry` is told of each try that failed and is followed by another. */
export function openListing(
  { account, dataDir, catalogueUrl, requestsPerMinute }: ReconcileConfig,
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
    nowMs: () => io.nowUs() / 1_000,
    pause,
    onRetry,
  });
  return { listing, nowUs };
}

/** An error with the code `usage` that says which names there are. */
export function unknownSubscription(
  unknown: readonly string[],
  known: readonly string[],
): AppError {
  return new AppError(
    'usage',
    `There never was a subscription ${unknown.join(', ')} in this data directory. Known are: ${known.toSorted().join(', ')}.`,
  );
}

/** An error with the code `configuration`; `then` completes "Run `earshot register` first; …". */
export function neverRegistered(then: string): AppError {
  return new AppError(
    'configuration',
    'No subscription was ever registered in this data directory, so nothing says what should be here.',
    { advice: `Run \`earshot register\` first; ${then}.` },
  );
}
