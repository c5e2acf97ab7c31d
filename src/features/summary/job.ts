/** Summary worker of a receiver: runs if a rule requests summaries. Its faults never stop intake. */

import { isDeepStrictEqual } from 'node:util';
import type { Io } from '../../core/cli/io.ts';
import type { Config } from '../../core/config/config.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import { loadSummaryRules, ruleFilterFindings } from './rules.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from './terms.ts';
import type { SummaryWorker } from './worker.ts';

export interface ServedSummaries {
  /** Reloads the rules. If they changed, a new worker replaces the running one. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts no worker if every rule is off. Problems of the rules are logged; intake continues. */
export async function serveSummaries(
  receiver: RunningReceiver,
  {
    rejected,
    ...config
  }: Config['summary'] & {
    dataDir: string;
    index: boolean;
    /** Returns why the whole file is rejected, which is already logged; null if it is not. */
    rejected: () => string | null;
  },
  log: Logger,
  io: Io,
): Promise<ServedSummaries> {
  let rules: ReadonlyMap<string, SummaryRule> | null = null;
  let worker: SummaryWorker | undefined;
  const load = async () => {
    try {
      const read = await loadSummaryRules(io);
      if (isDeepStrictEqual(read, rules)) return;
      for (const { where, finding } of ruleFilterFindings(read)) {
        const { message: reason, hint } = finding;
        log.warn({ where, reason, hint }, 'suspicious filter in a summary rule');
      }
      await worker?.stop();
      worker = undefined;
      rules = read;
      worker = await workerFor(read, receiver, config, { log, io });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { details } = error;
      if (rejected() === null)
        log.error({ reason: errorText(error), details }, 'summaries disabled by invalid settings');
    }
  };
  await load();
  return { reload: load, stop: async () => worker?.stop() };
}

async function workerFor(
  rules: ReadonlyMap<string, SummaryRule>,
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  config: Config['summary'] & { dataDir: string; index: boolean },
  { log, io }: { log: Logger; io: Io },
): Promise<SummaryWorker | undefined> {
  const defaultRule = plainSummaryRule(config.rule);
  if (areAllOff([defaultRule, ...rules.values()])) return undefined;
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
