/** Names what a summary is about, for people. */
import { formatDateUs } from '../../domain/notification-date.ts';
import { printable } from '../../domain/printable.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { noCollection } from '../../summary/worker/summary-jobs.ts';

type Subject = Pick<NewSummaryJob, 'productId' | 'productName' | 'subscription' | 'scope'>;

/** The product's name or id, or such as `digest of alps, 2026-11-19 00:00 to 2026-11-20 00:00 UTC, SENTINEL-2`. */
export function subjectName({ productId, productName, subscription, scope }: Subject): string {
  if (scope === null) return printable(productName ?? productId ?? '');
  const { fromUs, untilUs, area, collection, filter } = scope;
  const span = `${minuteOf(fromUs)} to ${minuteOf(untilUs)} UTC`;
  const all = subscription === null ? 'all subscriptions' : subscription;
  const of = all || 'notifications to no name';
  // An area is the user's own word for its filter.
  const which = filter === null ? null : `products that match ${filter}`;
  const part = area ?? (collection === noCollection ? 'no known collection' : collection) ?? which;
  return printable(`digest of ${of}, ${span}${part === null ? '' : `, ${part}`}`);
}

/** `2026-11-20 06:00`, UTC. */
export function minuteOf(us: number): string {
  return formatDateUs(us).slice(0, 16).replace('T', ' ');
}
