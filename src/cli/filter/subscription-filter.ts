/** The filter of a subscription from product flags, and how many products of the last week match it. */

import { readListingPage } from '../../admin/reconcile/listing-page.ts';
import { eventLists, listingUrl } from '../../admin/reconcile/listing-url.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { isBlankFilter } from '../../filter/check.ts';
import { printFilter } from '../../filter/print.ts';
import { createOutboundClient } from '../../http/outbound-client.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { conditionsOf } from '../products/compile-flags.ts';
import type { ConditionFlags } from '../products/product-flags.ts';
import type { SubscriptionFlags } from '../subscription-flags.ts';

const weekMs = 604_800_000;
/** Somebody waits for it, and registering does not depend on it. */
const countTimeoutMs = 20_000;

/**
 * The flags as a `$filter` text, joined by "and"; undefined without any. The text of --filter stays as it was
 * written. Throws `usage` for an area that cannot be used.
 */
export function filterOfFlags(
  flags: Pick<SubscriptionFlags, keyof ConditionFlags | 'filter'>,
  io: Pick<Io, 'readFile' | 'stderr' | 'env'>,
): string | undefined {
  const tree = conditionsOf(flags, io);
  if (tree === null) return flags.filter;
  const conditions = printFilter(tree);
  const { filter = '' } = flags;
  return isBlankFilter(filter) ? conditions : `${conditions} and (${filter})`;
}

/**
 * Prints the filter, and how many events of the last week it matches at the catalogue: one answer for each
 * event. A count that fails is a note.
 */
export async function showFilter(
  { events, filter }: Pick<DesiredSubscription, 'events' | 'filter'>,
  catalogueUrl: string,
  io: Pick<Io, 'env' | 'stderr' | 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<void> {
  const paint = painter(io, io.stderr);
  const shown = isBlankFilter(filter) ? 'none, every product' : printable(filter);
  io.stderr.write(`Filter: ${paint('cyan', shown)}\n`);
  for (const event of events) {
    try {
      const count = await countLastWeek({ event, filter, catalogueUrl }, io);
      const noun = count === 1 ? 'product' : 'products';
      io.stderr.write(
        `It matches ${count.toLocaleString('en-US')} ${noun} that the catalogue ${verbs[event]} in the last 7 days.\n`,
      );
    } catch (error) {
      if (!(error instanceof AppError) || error.code === 'cancelled') throw error;
      io.stderr.write(`Matching products were not counted: ${printable(errorText(error))}\n`);
      return;
    }
  }
}

const verbs = { created: 'published', modified: 'modified', deleted: 'deleted' } as const;

async function countLastWeek(
  question: {
    event: DesiredSubscription['events'][number];
    filter: string;
    catalogueUrl: string;
  },
  { nowUs, fetch, random, signal }: Pick<Io, 'nowUs' | 'fetch' | 'random' | 'signal'>,
): Promise<number> {
  const { event, filter, catalogueUrl } = question;
  const list = eventLists[event];
  const untilMs = Math.ceil(nowUs() / 1000);
  const sinceMs = untilMs - weekMs;
  const only = { top: 1, skip: 0, count: true };
  const url = listingUrl(catalogueUrl, {
    ...{ list: { ...list, expand: [] }, filter, sinceMs, untilMs },
    ...only,
  });
  const ask = createOutboundClient({
    service: 'the catalogue',
    variable: 'EARSHOT_CATALOGUE_URL',
    fetch,
    random,
    timing: { attemptTimeoutMs: countTimeoutMs, totalTimeoutMs: countTimeoutMs },
    retries: 2,
  });
  const purpose = `count the ${event} products`;
  const { status, json } = await ask({ method: 'GET', url, headers: {}, purpose, signal });
  if (status !== 200) throw uncounted(`the catalogue answered with status ${status}`);
  const page = readListingPage(json, { list, sinceMs });
  if ('broken' in page) throw uncounted(`the answer cannot be used, as ${page.broken}`);
  if (page.count === null) throw uncounted('the catalogue sent no count');
  return page.count;
}

function uncounted(reason: string): AppError {
  return new AppError('unavailable', `${reason}.`);
}
