/** Summaries that stand in for the store, for the app in front of them. */
import type { SummaryReader, SummaryRow } from '../../src/domain/summaries.ts';

export interface MemorySummaries extends SummaryReader {
  rows: SummaryRow[];
}

/** One of the products with a verified text of a model, asked for on 1 May 2026. */
export function memoryRow(id: number, changes: Partial<SummaryRow> = {}): SummaryRow {
  const atUs = Date.UTC(2026, 4, 1) * 1000;
  return {
    id,
    kind: 'product',
    productId: `product-${id}`,
    productName: null,
    subscription: 'alps',
    scope: null,
    state: 'done',
    text: { text: 'A text.', model: 'a/b', verified: true, doubts: [], createdAtUs: atUs },
    attempts: 0,
    requestedAtUs: atUs,
    nextTryAtUs: null,
    error: null,
    ...changes,
  };
}

export function createMemorySummaries(): MemorySummaries {
  const nobodyAsks = () => Promise.reject(new Error('nobody asks'));
  const memory: MemorySummaries = {
    rows: [],
    async *find(query) {
      const { kind, state, productId, subscription, verified, beforeId, limit } = query;
      const { sinceUs = 0, untilUs = Number.POSITIVE_INFINITY } = query;
      const wanted = memory.rows.filter(
        (row) =>
          (kind === undefined || row.kind === kind) &&
          (state === undefined || row.state === state) &&
          (productId === undefined || row.productId === productId) &&
          (subscription === undefined || row.subscription === subscription) &&
          (verified === undefined || row.text?.verified === verified) &&
          (beforeId === undefined || row.id < beforeId) &&
          row.requestedAtUs >= sinceUs &&
          row.requestedAtUs < untilUs,
      );
      yield* wanted.toSorted((a, b) => b.id - a.id).slice(0, limit);
    },
    textsOf: async (ids) =>
      new Map(
        memory.rows.flatMap(({ productId, text }) =>
          productId !== null && text !== null && ids.includes(productId) ? [[productId, text]] : [],
        ),
      ),
    due: nobodyAsks,
    nextDueAtUs: nobodyAsks,
    known: nobodyAsks,
    spending: nobodyAsks,
    counts: nobodyAsks,
    backlog: nobodyAsks,
  };
  return memory;
}
