/** Makes the jobs that rules and commands ask for. */
import type { DigestScope, NewSummaryJob } from '../../domain/summaries.ts';

/** What belongs to no known collection, by its name, has digests of its own. */
export const noCollection = 'OTHER';

/** Receipts of the last moment are indexed by then. */
const settlingUs = 60_000_000;

export function productJob(
  product: { productId: string; productName: string | null },
  calledBy: { subscription: string | null; position: number | null },
  nowUs: number,
): NewSummaryJob {
  const { productId, productName } = product;
  const subject = productId.toLowerCase();
  return {
    kind: 'product',
    subject,
    productId,
    productName,
    ...calledBy,
    scope: null,
    dueAtUs: nowUs,
  };
}

/** Due when its window is over. */
export function digestJob(scope: DigestScope): NewSummaryJob {
  const { fromUs, untilUs, subscription, collection, filter, area } = scope;
  return {
    kind: 'digest',
    subject: JSON.stringify([subscription, collection, area, filter, fromUs, untilUs]),
    productId: null,
    productName: null,
    subscription,
    position: null,
    scope,
    dueAtUs: untilUs + settlingUs,
  };
}
