/** Measures every kind of query on the small and the large data in turn. */
import type { Progress } from './progress.ts';
import { createQueryCases, type QueryCase, type StatedOrder, statedOrders } from './query-cases.ts';
import type { QueryData } from './query-data.ts';
import { examinePlans, type PlanFigures } from './query-plan.ts';
import type { QuerySubject } from './query-subject.ts';
import { type Ask, firstPage, type QueryTimes, timeInTurn, warmUpValues } from './query-timing.ts';

/** Answers to the same question about the small and the large data. */
export interface Compared {
  readonly small: QueryTimes;
  readonly large: QueryTimes;
}

/** What one kind of query took. */
export interface CaseFigures {
  readonly name: string;
  /** Newest received first (tombstones: newest deleted first); on the index itself and over HTTP. */
  readonly page: Compared;
  readonly httpPage: Compared;
  readonly count: Compared;
  readonly httpCount: Compared;
  /** The first page in other orders, on the index itself; none for tombstones. */
  readonly orders: readonly (Compared & { readonly order: StatedOrder })[];
  /** Of the large data. */
  readonly plans: PlanFigures;
}

/** What one of the two data folders holds, and what its server needed. */
export interface SizeFigures {
  readonly data: QueryData;
  readonly tombstones: number;
  /** Most memory of the server, which is a process of its own, bytes; null where it cannot be read. */
  readonly serverPeakResidentBytes: number | null;
}

/** Both sizes and all kinds of query. */
export interface QueryFigures {
  readonly small: SizeFigures;
  readonly large: SizeFigures;
  readonly cases: readonly CaseFigures[];
}

/** In other orders many queries are slow: fewer values tell as much. */
const orderValuesMax = 15;

/** A kind of query at one of the two places. */
interface Place {
  readonly subject: QuerySubject;
  readonly one: QueryCase;
}

/** Asks `values` different values of each kind. */
export async function measureQueries(
  small: QuerySubject,
  large: QuerySubject,
  values: number,
  progress: Progress,
): Promise<QueryFigures> {
  const count = values + warmUpValues;
  const ofSmall = await createQueryCases(small.products, small.state.lastPosition, count);
  const ofLarge = await createQueryCases(large.products, large.state.lastPosition, count);
  const cases: CaseFigures[] = [];
  for (const [index, one] of ofLarge.entries()) {
    const same = ofSmall[index];
    if (same === undefined) throw new Error('both sizes have the same kinds of query');
    progress.show(`query: ${one.name}`);
    cases.push(await measureCase({ subject: small, one: same }, { subject: large, one }));
  }
  return { small: sizeOf(small), large: sizeOf(large), cases };
}

async function measureCase(small: Place, large: Place): Promise<CaseFigures> {
  const compare = async (askOf: (place: Place) => Ask, valuesMax = Number.POSITIVE_INFINITY) => {
    const asking = (place: Place) => ({
      filters: place.one.filters.slice(-warmUpValues - valuesMax),
      ask: askOf(place),
    });
    const [few, many] = await timeInTurn(asking(small), asking(large));
    return { small: few, large: many };
  };
  const { name, entity } = large.one;
  const orders: CaseFigures['orders'][number][] = [];
  for (const order of entity === 'Products' ? statedOrders : []) {
    orders.push({ order, ...(await compare((place) => pageAsk(place, order), orderValuesMax)) });
  }
  return {
    name,
    page: await compare((place) => pageAsk(place)),
    httpPage: await compare(({ subject, one }) => subject.http.page(one)),
    count: await compare(({ subject }) => async ({ tree: filter }) => {
      return subject.products.count({ entity, filter });
    }),
    httpCount: await compare(({ subject, one }) => subject.http.count(one)),
    orders,
    plans: await examinePlans(large.subject.products, large.one),
  };
}

function pageAsk({ subject: { products }, one: { entity } }: Place, order?: StatedOrder): Ask {
  return async ({ tree: filter }) => (await firstPage(products, { entity, filter, order })).length;
}

function sizeOf({ data, state, serverPeakBytes }: QuerySubject): SizeFigures {
  return { data, tombstones: state.tombstones, serverPeakResidentBytes: serverPeakBytes() };
}
