/** Composes what asks the catalogue for its lists. */
import { createCatalogueListing } from '../../admin/reconcile/catalogue-listing.ts';
import type { ListingTrouble } from '../../admin/reconcile/page-requests.ts';
import type { ProductListing } from '../../admin/reconcile/product-listing.ts';
import { createAccessTokens } from '../../admin/session/access-tokens.ts';
import type { ReconcileConfig } from '../../config/completeness-config.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import type { Io } from '../io.ts';
import { createServiceClock } from '../service-clock.ts';
import { createStoppableFetch } from '../stoppable-fetch.ts';
import { pause } from '../until-aborted.ts';

export interface OpenedListing {
  listing: ProductListing;
  /** The catalogue's time, as it said last: the dates of events are its own. */
  nowUs: () => number;
}

/** Opens nothing and asks nobody. `onTrouble` is told of each try that failed and is followed by another. */
export function openListing(
  { account, dataDir, catalogueUrl, requestsPerMinute }: ReconcileConfig,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>,
  onTrouble: (trouble: ListingTrouble) => void,
): OpenedListing {
  const own = { nowUs: io.nowUs, fetch: createStoppableFetch(io) };
  const takeLock = createTakeLock(dataDir);
  const tokens =
    account === null ? null : createAccessTokens({ account, dataDir, ...own, takeLock });
  const { nowUs, fetch } = createServiceClock(own);
  const listing = createCatalogueListing({
    catalogueUrl,
    tokens,
    fetch,
    random: io.random,
    requestsPerMinute,
    nowMs: () => io.nowUs() / 1_000,
    pause,
    onTrouble,
  });
  return { listing, nowUs };
}
