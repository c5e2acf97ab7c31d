/** Summary worker of a receiver: runs if a rule requests summaries. Its faults never stop intake. */

import type { Io } from '../../core/cli/io.ts';
import type { Config } from '../../core/config/config.ts';
import type { Job } from '../../core/host/job.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { loadSummaryRules, ruleFilterFindings } from './rules.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from './terms.ts';

/**
 * Starts no worker if every rule is off. Problems of the rules are logged; intake continues. Null: there is no worker.
 */
export async function serveSummaries(
  receiver: RunningReceiver,
  config: Config['summary'] & { dataDir: string; index: boolean },
  log: Logger,
  io: Io,
): Promise<Job | null> {
  try {
    const rules = await loadSummaryRules(io);
    for (const { where, finding } of ruleFilterFindings(rules)) {
      const { message: reason, hint } = finding;
      log.warn({ where, reason, hint }, 'suspicious filter in a summary rule');
    }
    return await workerFor(rules, receiver, config, { log, io });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { details } = error;
    log.error({ reason: errorText(error), details }, 'summaries disabled by invalid settings');
    return null;
  }
}

async function workerFor(
  rules: ReadonlyMap<string, SummaryRule>,
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  config: Config['summary'] & { dataDir: string; index: boolean },
  { log, io }: { log: Logger; io: Io },
): Promise<Job | null> {
  const defaultRule = plainSummaryRule(config.rule);
  if (areAllOff([defaultRule, ...rules.values()])) return null;
  if (!config.index) {
    throw new AppError(
      'configuration',
      'Summaries need the product index, which EARSHOT_INDEX=off disables.',
      { advice: 'Set EARSHOT_INDEX to on.' },
    );
  }
  const [{ createRules, openSummaryContext }, { startSummaryWorker }] = await Promise.all([
    import('./jobs.ts'),
    import('./worker.ts'),
  ]);
  const ruleOf = createRules(rules, defaultRule);
  const model = config.inference?.model ?? null;
  log.info(
    { model, ...config.budget },
    model === null ? 'no model configured; summaries come from the template' : 'summaries enabled',
  );
  const context = openSummaryContext(config, { store, products, log }, io);
  return startSummaryWorker(context, ruleOf);
}
