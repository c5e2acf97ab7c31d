/** Summaries inside a receiver that serves: started where a rule asks for them, and never in its way. */

import type { SummaryConfig } from '../../config/summary-config.ts';
import { loadSummaryRules, ruleFilterFindings } from '../../config/summary-rules.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from '../../domain/summary-rule.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from '../serve.ts';

export interface ServedSummaries {
  stop(): Promise<void>;
}

/** Undefined where every rule is off. What is wrong with the rules is told to the log: intake goes on. */
export async function serveSummaries(
  { store, products }: RunningReceiver,
  config: SummaryConfig & { dataDir: string; index: boolean },
  log: Logger,
  io: Io,
): Promise<ServedSummaries | undefined> {
  try {
    const rules = await loadSummaryRules(io.workingDir);
    for (const { where, finding } of ruleFilterFindings(rules)) {
      const { message: reason, hint } = finding;
      log.warn({ where, reason, hint }, 'a filter of a summary rule may not mean what it should');
    }
    const otherwise = plainSummaryRule(config.rule);
    if (areAllOff([otherwise, ...rules.values()])) return undefined;
    if (!config.index) {
      throw new AppError(
        'configuration',
        'Summaries are made from the product index, which EARSHOT_INDEX=off turns off. Set it to on.',
      );
    }
    return await startWorker({ store, products }, { config, rules, otherwise, log, io });
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { message: reason, details } = error;
    log.error({ reason, details }, 'there are no summaries before this is put right');
    return undefined;
  }
}

async function startWorker(
  { store, products }: Pick<RunningReceiver, 'store' | 'products'>,
  means: {
    config: SummaryConfig & { dataDir: string };
    rules: ReadonlyMap<string, SummaryRule>;
    otherwise: SummaryRule;
    log: Logger;
    io: Io;
  },
): Promise<ServedSummaries> {
  const { config, rules, otherwise, log, io } = means;
  const [{ compileRules }, { startSummaryWorker }, { openSummaryWorld }] = await Promise.all([
    import('../../summary/worker/compiled-rule.ts'),
    import('../../summary/worker/run-summaries.ts'),
    import('./open-summary-world.ts'),
  ]);
  const ruleOf = compileRules(rules, otherwise);
  const model = config.inference?.model ?? null;
  log.info(
    { model, ...config.budget },
    model === null
      ? 'summaries are made from the facts alone: no model is configured'
      : 'summaries are made',
  );
  const world = openSummaryWorld(config, { store, products, log }, io);
  // The map takes a tenth of a second: now, and not in the middle of a burst.
  world.places();
  return startSummaryWorker(world, ruleOf);
}
