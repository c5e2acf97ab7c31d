/** Reads indexed notifications with their products, and counts the values of products. */

import { toDisplayGeometry } from '../../../filter/geometry/geojson.ts';
import {
  type EventPage,
  type EventQuery,
  type Facets,
  facetFields,
  type IndexedEvent,
  type Products,
} from '../../../filter/products.ts';
import { prepared } from '../../../store/engine/database.ts';
import {
  examinedMax,
  geometryOf,
  type LongQuery,
  matches,
  type ProductDatabases,
} from './product-queries.ts';
import { toProductRow } from './product-rows.ts';
import {
  type Candidate,
  candidatesOf,
  conditionOf,
  footprintJoin,
  planSearch,
  selected,
} from './search/search.ts';

/** Maximum notifications examined for one page, so that a rare match does not block other queries for long. */
const eventsExaminedMax = 10_000;

type SelectedEvent = Candidate & {
  eventPosition: number;
  event: string;
  subscription: string | null;
  notificationUs: number | null;
  eventReceivedUs: number;
  source: string;
};

/** Returns a page of notifications; it may have fewer than `limit` although more follow. */
export function eventPage(databases: ProductDatabases, query: EventQuery): EventPage {
  const { filter, subscription, events, limit } = query;
  const plan = planSearch({ entity: null, filter, footprints: true }, databases.index);
  const condition = conditionOf(plan, null);
  const { afterPosition = 0, beforePosition = Number.MAX_SAFE_INTEGER } = query;
  const ofProduct = query.product === undefined ? [] : [query.product];
  const named = subscription === undefined ? [] : [subscription];
  const rows = prepared<unknown[], SelectedEvent>(
    databases.index,
    `SELECT e.position AS eventPosition, e.event, e.subscription,
       e.notification_us AS notificationUs, e.received_us AS eventReceivedUs, e.source,
       ${selected(plan)}
     FROM product_event e CROSS JOIN product p ON p.id = e.product ${footprintJoin(plan)}
     WHERE e.position > ? AND e.position < ?
       ${ofProduct.length === 0 ? '' : 'AND e.product = ?'}
       ${named.length === 0 ? '' : 'AND e.subscription = ?'}
       ${events === undefined ? '' : 'AND e.event IN (SELECT value FROM json_each(?))'}
       AND ${condition.sql}
     ORDER BY e.position DESC LIMIT ${eventsExaminedMax}`,
  );
  const found: IndexedEvent[] = [];
  let examined = 0;
  let last = 0;
  const listed = events === undefined ? [] : [JSON.stringify(events)];
  const values = [
    afterPosition,
    beforePosition,
    ...ofProduct,
    ...named,
    ...listed,
    ...condition.values,
  ];
  for (const row of rows.iterate(...values)) {
    examined += 1;
    last = row.eventPosition;
    if (matches(databases, plan, row)) found.push(toIndexedEvent(row));
    if (found.length >= limit || examined >= examinedMax[plan.needs]) {
      return { events: found, next: last };
    }
  }
  return { events: found, next: examined < eventsExaminedMax ? null : last };
}

function toIndexedEvent(selectedEvent: SelectedEvent): IndexedEvent {
  const {
    eventPosition,
    event,
    subscription,
    notificationUs,
    eventReceivedUs,
    source,
    ...product
  } = selectedEvent;
  const footprint = geometryOf(product);
  return {
    ...{ position: eventPosition, event, subscription, notificationUs, source },
    receivedAtUs: eventReceivedUs,
    product: toProductRow(product),
    footprint: footprint && toDisplayGeometry(footprint),
  };
}

/** Products counted for facets: about 100 ms of work. */
const facetProductsMax = 10_000;
const facetValuesMax = 20;

/** Counts the newest matching products by value, the most frequent values first. */
export async function countFacets(
  { call, ...databases }: LongQuery,
  query: Parameters<Products['facets']>[0],
): Promise<Facets> {
  const plan = planSearch(query, databases.index);
  const counts = facetFields.map(() => new Map<string, number>());
  let counted = 0;
  let examined = 0;
  for (const candidate of candidatesOf(databases.index, plan, query)) {
    if ('after' in candidate) {
      await call.pause();
      continue;
    }
    examined += 1;
    if (examined % 1_000 === 0) await call.pause();
    if (!matches(databases, plan, candidate)) continue;
    const row = toProductRow(candidate);
    for (const [i, field] of facetFields.entries()) {
      const value = row[field];
      if (value !== null) counts[i]?.set(value, (counts[i].get(value) ?? 0) + 1);
    }
    counted += 1;
    if (counted >= facetProductsMax) break;
  }
  const values = facetFields.map((field, i) => [field, mostFrequent(counts[i] ?? new Map())]);
  return {
    counted,
    complete: counted < facetProductsMax,
    values: Object.fromEntries(values) as Facets['values'],
  };
}

function mostFrequent(counts: ReadonlyMap<string, number>) {
  return [...counts]
    .sort(([a, countA], [b, countB]) => countB - countA || (a < b ? -1 : 1))
    .slice(0, facetValuesMax)
    .map(([value, count]) => ({ value, count }));
}
