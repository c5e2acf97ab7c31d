/** When a push tells of an event of the catalogue: one rule for all that ask (decision 23). */
import type { CatalogueEvent } from './completeness.ts';

/** What counts of a push. Its event is in lower case. */
export interface ToldByPush {
  event: string;
  /** The ModificationDate of its record; null without one. */
  stateUs: number | null;
  /** Its NotificationDate. */
  notificationUs: number | null;
}

/**
 * The millisecond of a date in microseconds. The catalogue once went from three to six digits, so that one
 * modification may have been told with either: dates of modifications are compared by their milliseconds.
 */
export function millisecondOf(us: number): number {
  return Math.floor(us / 1000);
}

/** The date of an event as it is written into the log: of a modification, the whole millisecond. */
export function writtenEventUs({ event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>) {
  return event === 'modified' ? millisecondOf(eventUs) * 1000 : eventUs;
}

/**
 * A product is created and deleted once. A modification is told by any push that shows the product in that state
 * or a later one; by one of a modification without a record, when it was sent at that date or later.
 */
export function tellsOf(
  push: ToldByPush,
  { event, eventUs }: Pick<CatalogueEvent, 'event' | 'eventUs'>,
): boolean {
  if (event !== 'modified') return push.event === event;
  const { stateUs, notificationUs } = push;
  const isNewer = (us: number | null) => us !== null && millisecondOf(us) >= millisecondOf(eventUs);
  if (push.event === 'modified') return isNewer(stateUs ?? notificationUs);
  return push.event === 'created' && isNewer(stateUs);
}
