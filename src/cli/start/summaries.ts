/** Summaries of a receiver: started where a rule requests them; no fault of theirs stops intake. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../config/config.ts';
import { loadSummaryRules, ruleFilterFindings } from '../../config/summary-rules.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { areAllOff, plainSummaryRule, type SummaryRule } from '../../domain/summaries.ts';
import type { SummaryWorker } from '../../summary/worker/run-summaries.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from './serve.ts';

export interface ServedSummaries {
  /** Reads the rules again; a worker with other rules replaces the one that runs. */
  reload(): Promise<void>;
  stop(): Promise<void>;
}

/** No worker runs where every rule is off. Faults of the rules are logged; intake continues. */
export async function serveSummaries(
  receiver: RunningReceiver,
  {
    rejected,
    ...config
  }: Config['summary'] & {
    dataDir: string;
    index: boolean;
    /** Why the file cannot be read as a whole, which was logged; else null. */
    rejected: () => string | null;
  },
  log: Logger,
  io: Io,
): Promise<ServedSummaries> {
  let rules: ReadonlyMap<string, SummaryRule> | null = null;
  let worker: SummaryWorker | undefined;
  const load = async () => {
    try {
      const read = await loadSummaryRules(io.workingDir);
      if (isDeepStrictEqual(read, rules)) return;
      for (const { where, finding } of ruleFilterFindings(read)) {
        const { message: reason, hint } = finding;
        log.warn({ where, reason, hint }, 'a filter of a summary rule may not mean what it should');
      }
      await worker?.stop();
      worker = undefined;
      rules = read;
      worker = await workerFor(read, receiver, config, { log, io });
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      const { details } = error;
      if (rejected() === null)
        log.error({ reason: errorText(error), details }, 'summaries are off until this is fixed');
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
  const otherwise = plainSummaryRule(config.rule);
  if (areAllOff([otherwise, ...rules.values()])) return undefined;
  if (!config.index) {
    throw new AppError(
      'configuration',
      'Summaries are made from the product index, which EARSHOT_INDEX=off turns off.',
      { advice: 'Set it to on.' },
    );
  }
  const [{ compileRules }, { startSummaryWorker }, { openSummaryContext }] = await Promise.all([
    import('../../summary/worker/collect-jobs.ts'),
    import('../../summary/worker/run-summaries.ts'),
    import('../summaries/summary-context.ts'),
  ]);
  const ruleOf = compileRules(rules, otherwise);
  const model = config.inference?.model ?? null;
  log.info(
    { model, ...config.budget },
    model === null
      ? 'summaries are made from the facts alone: no model is configured'
      : 'summaries are made',
  );
  const context = openSummaryContext(config, { store, products, log }, io);
  // The map takes a tenth of a second: now, and not in the middle of a burst.
  context.places();
  return startSummaryWorker(context, ruleOf);
}
