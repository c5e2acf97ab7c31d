/**
 * Loads `earshot.config.ts` of each folder it receives, as the program does: without a test runner
 * in between.
 */

import { loadSubscriptionsFile } from '../../../src/core/config/subscriptions-file.ts';
import type { AppError } from '../../../src/core/terms/app-error.ts';
import type { DesiredSubscription } from '../../../src/core/terms/subscription.ts';
import { type LoadedSinks, loadEachSink } from '../../../src/features/sinks/definitions.ts';
import { loadSummaryRules } from '../../../src/features/summary/rules.ts';
import type { SummaryRule } from '../../../src/features/summary/terms.ts';
import { settings } from '../../helpers/settings.ts';

export type Refusal = Pick<AppError, 'name' | 'code' | 'message' | 'details'>;

/** The message sent back for each folder. */
export interface LoadedFile {
  subscriptions: DesiredSubscription[] | null | Refusal;
  rules: Record<string, SummaryRule> | Refusal;
  /** The valid and the faulty sinks. */
  sinks: LoadedSinks | Refusal;
}

process.on('message', async (folder: string) => {
  const loaded: LoadedFile = {
    subscriptions: await loadSubscriptionsFile({ workingDir: folder, settings }).catch(refusalOf),
    rules: await loadSummaryRules({ workingDir: folder, settings }).then(
      Object.fromEntries,
      refusalOf,
    ),
    sinks: await loadEachSink({ workingDir: folder, settings }).catch(refusalOf),
  };
  process.send?.(loaded);
});

function refusalOf({ name, code, message, details }: AppError): Refusal {
  return { name, code, message, details };
}
