/** Puts together what a report of coverage tells, from the store and the product index. */
import { isAppError } from './app-error.ts';
import type { CompletenessReader } from './completeness.ts';
import { hourOf, reportCoverage, type SubscriptionCoverage } from './coverage-report.ts';
import type { Products, SubscriptionDelays } from './products.ts';

export interface CoverageQuestion {
  sinceUs: number;
  untilUs: number;
  subscription?: string | undefined;
}

export interface CoverageReport {
  sinceUs: number;
  untilUs: number;
  subscriptions: SubscriptionCoverage[];
  /** Null without a product index. */
  delays: SubscriptionDelays[] | null;
}

/** Whole hours that hold the window. Rejects with `unavailable` when the store cannot be read. */
export async function readCoverage(
  {
    completeness,
    products,
  }: { completeness: CompletenessReader; products: Pick<Products, 'delays'> },
  { sinceUs, untilUs, subscription }: CoverageQuestion,
  signal?: AbortSignal,
): Promise<CoverageReport> {
  const asked = { sinceUs: hourOf(sinceUs), untilUs };
  const [definitions, hours, delays, wholeSinceUs] = await Promise.all([
    completeness.definitions(),
    completeness.coverage({ ...asked, subscription }),
    products.delays({ ...asked, subscription }, signal).catch(unlessThereIsNone),
    completeness.wholeSinceUs(),
  ]);
  const wanted = definitions.filter(
    (one) => subscription === undefined || one.subscription === subscription,
  );
  return {
    ...asked,
    subscriptions: reportCoverage({ ...asked, definitions: wanted, hours, wholeSinceUs }),
    delays,
  };
}

function unlessThereIsNone(error: unknown): null {
  if (isAppError(error, 'unavailable')) return null;
  throw error;
}
