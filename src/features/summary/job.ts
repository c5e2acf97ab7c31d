/** Summary worker of a receiver: runs if a rule requests summaries. Its faults never stop intake. */

import type { Job } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { JobContext } from '../../receiver/slots.ts';
import { loadSummaryRules, ruleFilterFindings } from './rules.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from './terms.ts';

/**
 * Starts no worker if every rule is off. Problems of the rules are logged; intake continues. Null: there is no worker.
 */
export async function serveSummaries(context: JobContext): Promise<Job | null> {
  const { log, io } = context;
  try {
    const rules = await loadSummaryRules(io);
    for (const { where, finding } of ruleFilterFindings(rules)) {
      const { message: reason, hint } = finding;
      log.warn({ where, reason, hint }, 'suspicious filter in a summary rule');
    }
    return await workerFor(rules, context);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { details } = error;
    log.error({ reason: errorText(error), details }, 'summaries disabled by invalid settings');
    return null;
  }
}

async function workerFor(
  rules: ReadonlyMap<string, SummaryRule>,
  { receiver: { store, products }, settings: { summary, index }, log, io }: JobContext,
): Promise<Job | null> {
  const defaultRule = plainSummaryRule(summary.rule);
  if (areAllOff([defaultRule, ...rules.values()])) return null;
  if (!index) {
    throw new AppError(
      'configuration',
      'Summaries need the product index, which EARSHOT_INDEX=off disables.',
      { advice: 'Set EARSHOT_INDEX to on.' },
    );
  }
  const [{ openSummaryContext }, { startSummaryWorker }] = await Promise.all([
    import('./jobs.ts'),
    import('./worker.ts'),
  ]);
  const model = summary.inference?.model ?? null;
  log.info(
    { model, ...summary.budget },
    model === null ? 'no model configured; summaries come from the template' : 'summaries enabled',
  );
  const context = openSummaryContext(summary, { store, products, log }, io);
  return startSummaryWorker(context, (name) => rules.get(name ?? '') ?? defaultRule);
}
