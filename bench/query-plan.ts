/** Tells by SQLite's plan, and by where a page ended, whether a query scans the table of products. */
import type { Products } from '../src/domain/products.ts';
import type { QueryCase } from './query-cases.ts';
import { firstPage, pageRows, warmUpValues } from './query-timing.ts';

/** How the values of one kind of query are answered. */
export interface PlanFigures {
  /** What narrows the search, with the number of queries that it narrows; `none` for no index. */
  readonly narrowedBy: Readonly<Record<string, number>>;
  /** First pages that are read along the order, past products that do not match. */
  readonly walks: number;
  /** The most products that one of those passed, of all products; 0 without one. */
  readonly longestWalkShare: number;
  /** First pages that scan the table, and counts that do. */
  readonly pageScans: number;
  readonly countScans: number;
}

/** A walk past more of the table than this is a scan, though it may end before the last row. */
const scanShare = 0.1;

/** The table's name in the queries is `p`; of the others, only virtual tables and parts are scanned. */
const tableStep = /^SCAN (p|product)( |$)/;

/**
 * Looks at each value of a case, newest received first. A first page may be a walk along its order: the
 * plan shows a step over the table without a condition for an index, and it ends with the fiftieth
 * match, whose position tells how far that was. A count has no such end: it scans when no index narrows.
 */
export async function examinePlans(
  products: Products,
  { entity, filters }: QueryCase,
): Promise<PlanFigures> {
  const { lastPosition } = await products.indexState();
  const narrowedBy: Record<string, number> = {};
  const walkShares: number[] = [];
  let countScans = 0;
  for (const { tree } of filters.slice(0, -warmUpValues)) {
    const query = { entity, filter: tree };
    const { narrowedBy: index, plan } = await products.explain(query);
    const indexName = index?.split(' (')[0] ?? 'none';
    narrowedBy[indexName] = (narrowedBy[indexName] ?? 0) + 1;
    if (index === null) countScans += 1;
    if (!plan.some((step) => tableStep.test(step))) continue;
    const page = await firstPage(products, { ...query, records: false });
    const last = page.length < pageRows ? undefined : page.at(-1)?.row;
    walkShares.push(last === undefined ? 1 : 1 - (last.position - 1) / lastPosition);
  }
  return {
    narrowedBy,
    walks: walkShares.length,
    longestWalkShare: Math.max(0, ...walkShares),
    pageScans: walkShares.filter((share) => share > scanShare).length,
    countScans,
  };
}
