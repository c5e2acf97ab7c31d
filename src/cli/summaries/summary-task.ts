/** What a run of `earshot summarize` has to do: what flags want, what is to be tried again, or what the rules ask. */
import { loadSummaryRules } from '../../config/subscriptions-file.ts';
import type { SummaryConfig } from '../../config/summary-config.ts';
import type { NewSummaryJob } from '../../domain/summaries.ts';
import { plainSummaryRule } from '../../domain/summary-rule.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { compileRules, type RuleOf } from '../../summary/worker/compiled-rule.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { Io } from '../io.ts';
import { collectAll } from './jobs-by-rules.ts';

export interface Task {
  /** The jobs; undefined for all that are due. */
  ids: number[] | undefined;
  /** What is said when that turns out to be nothing. */
  nothing: string;
}

export interface Rules {
  of: RuleOf;
  /** Whether none of them asks for anything. */
  areOff: boolean;
}

/** Rejects with `configuration` for a file with faults. */
export async function readRules(
  { rule }: SummaryConfig,
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<Rules> {
  const bySubscription = await loadSummaryRules(workingDir);
  const otherwise = plainSummaryRule(rule);
  const areOff = [otherwise, ...bySubscription.values()].every(({ kind }) => kind === 'off');
  return { of: compileRules(bySubscription, otherwise), areOff };
}

export async function wantedTask(
  jobs: NewSummaryJob[],
  { summaries, nowUs }: SummaryWorld,
): Promise<Task> {
  const { ids } = await summaries.enqueue({ jobs, waitingMax, atUs: nowUs() });
  return {
    ids,
    nothing: 'Nothing to write: no product was received in this time, or none matches.',
  };
}

/** Everything that is due after the rules have been looked up. */
export async function dueTask(
  rules: Rules,
  world: SummaryWorld,
  { signal }: Pick<Io, 'signal'>,
): Promise<Task> {
  await collectAll(world, rules.of, signal);
  const nothing = rules.areOff
    ? 'No rule asks for summaries: set EARSHOT_SUMMARY, or `summary` in earshot.config.ts. Without a rule: earshot summarize --each --since 24h'
    : 'Nothing was due. For what came before there were rules: earshot summarize --each --since 24h';
  return { ids: undefined, nothing };
}

/** Those that failed or were dropped. */
export async function retryTask(
  wanted: number[] | 'all',
  { summaries, nowUs }: SummaryWorld,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<Task> {
  const count = await summaries.retry({ ids: wanted, nowUs: nowUs() });
  if (count > 0) stderr.write(`${count} to be tried again.\n`);
  const nothing =
    'Nothing to try again: only what failed or was dropped can be. earshot query summaries --state failed shows which.';
  if (wanted === 'all') return { ids: count === 0 ? [] : undefined, nothing };
  const due = await summaries.due({ nowUs: nowUs(), limit: wanted.length, ids: wanted });
  return { ids: due.map(({ id }) => id), nothing };
}
