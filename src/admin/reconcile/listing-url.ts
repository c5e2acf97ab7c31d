/** The addresses of the catalogue's lists: which list an event is in, by which date, and how it is asked. */
import type { Entity } from '../../domain/filter-tree.ts';
import type { SubscriptionEvent } from '../../domain/subscription.ts';
import { isBlankFilter } from '../../filter/check.ts';

/** Where events of a kind are listed (facts, catalogue 5). */
export interface EventList {
  entity: Entity;
  /** The field that has the date of the event. */
  dateField: 'PublicationDate' | 'ModificationDate' | 'DeletionDate';
  expand: readonly string[];
}

const productParts = ['Attributes', 'Assets', 'Locations'];

export const eventLists: Readonly<Record<SubscriptionEvent, EventList>> = {
  created: { entity: 'Products', dateField: 'PublicationDate', expand: productParts },
  modified: { entity: 'Products', dateField: 'ModificationDate', expand: productParts },
  deleted: { entity: 'DeletedProducts', dateField: 'DeletionDate', expand: ['Attributes'] },
};

/** What a page is asked with; times in milliseconds, as the catalogue's own filters are written with. */
export interface ListingQuestion {
  list: EventList;
  /** Blank for every product. */
  filter: string;
  sinceMs: number;
  /** Excluded. */
  untilMs: number;
  top: number;
  skip: number;
  /** True: the catalogue is to say how many there are from `sinceMs` on. */
  count: boolean;
}

/** `catalogueUrl` as everywhere: without `/odata/v1` and without a last slash. */
export function listingUrl(catalogueUrl: string, question: ListingQuestion): string {
  const { list, filter, top, skip, count } = question;
  const window = windowFilter(question);
  const options: [name: string, value: string][] = [
    ['$filter', isBlankFilter(filter) ? window : `(${filter}) and ${window}`],
    ['$orderby', `${list.dateField} asc`],
    ['$top', String(top)],
    ...(skip === 0 ? [] : [['$skip', String(skip)] satisfies [string, string]]),
    ...list.expand.map((part): [string, string] => ['$expand', part]),
    ...(count ? [['$count', 'true'] satisfies [string, string]] : []),
  ];
  const query = options.map(
    ([name, value]) => `${name}=${encodeURIComponent(value.toWellFormed())}`,
  );
  return `${catalogueUrl}/odata/v1/${list.entity}?${query.join('&')}`;
}

function windowFilter({ list: { dateField }, sinceMs, untilMs }: ListingQuestion): string {
  const date = (ms: number) => new Date(ms).toISOString();
  return `${dateField} ge ${date(sinceMs)} and ${dateField} lt ${date(untilMs)}`;
}
