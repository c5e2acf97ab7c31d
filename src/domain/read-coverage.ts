/** Reads coverage from the store, and delays from the product index. */
import { isAppError } from './app-error.ts';
import type { CompletenessReader } from './completeness.ts';
import { hourOf, reportCoverage, type SubscriptionCoverage } from './coverage-report.ts';
import type { Products, SubscriptionDelays } from './products.ts';

export interface CoverageQuestion {
  sinceUs: number;
  untilUs: number;
  subscription?: string | undefined;
  nowUs: number;
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
  question: CoverageQuestion,
  signal?: AbortSignal,
): Promise<CoverageReport> {
  const { untilUs, subscription } = question;
  const sinceUs = hourOf(question.sinceUs);
  const [subscriptions, delays] = await Promise.all([
    readSubscriptionCoverage(completeness, question),
    products.delays({ sinceUs, untilUs, subscription }, signal).catch(unlessThereIsNone),
  ]);
  return { sinceUs, untilUs, subscriptions, delays };
}

/** The same without delays. */
export async function readSubscriptionCoverage(
  completeness: CompletenessReader,
  { sinceUs, untilUs, subscription, nowUs }: CoverageQuestion,
): Promise<SubscriptionCoverage[]> {
  const window = { sinceUs: hourOf(sinceUs), untilUs };
  const [all, hours, wholeSinceUs] = await Promise.all([
    completeness.definitions(),
    completeness.coverage({ ...window, subscription }),
    completeness.wholeSinceUs(),
  ]);
  const definitions = all.filter(
    (one) => subscription === undefined || one.subscription === subscription,
  );
  return reportCoverage({ ...window, definitions, hours, wholeSinceUs, nowUs });
}

function unlessThereIsNone(error: unknown): null {
  if (isAppError(error, 'unavailable')) return null;
  throw error;
}
