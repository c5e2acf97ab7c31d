/** Loads the summary rules of each folder it is told, as the program does: no test runner in between. */
import { loadSubscriptionsFile } from '../../src/config/subscriptions-file.ts';
import { loadSummaryRules } from '../../src/config/summary-rules.ts';
import type { AppError } from '../../src/domain/app-error.ts';
import type { SummaryRule } from '../../src/domain/summary-rule.ts';

type Refusal = Pick<AppError, 'code' | 'message' | 'details'>;

/** What is sent back for each folder. */
export interface LoadedRules {
  rules: Record<string, SummaryRule> | Refusal;
  /** The fields of each subscription as all else sees it. */
  subscriptions: Record<string, string[]> | Refusal;
}

process.on('message', async (folder: string) => {
  const rules = await loadSummaryRules(folder).then(
    (loaded) => Object.fromEntries(loaded),
    refusalOf,
  );
  const subscriptions = await loadSubscriptionsFile(folder).then(
    (loaded) => Object.fromEntries((loaded ?? []).map((one) => [one.name, Object.keys(one)])),
    refusalOf,
  );
  process.send?.({ rules, subscriptions } satisfies LoadedRules);
});

function refusalOf({ code, message, details }: AppError): Refusal {
  return { code, message, details };
}
