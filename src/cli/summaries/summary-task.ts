/** What a run of `earshot summarize` has to do: what flags want, what is to be tried again, or what the rules ask. */

import type { Config } from '../../config/config.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import type { NewSummaryJob, SummaryReader } from '../../domain/summaries.ts';
import { areAllOff, plainSummaryRule } from '../../domain/summary-rule.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { compileRules, type RuleOf } from '../../summary/worker/compiled-rule.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';
import type { Io } from '../io.ts';
import { collectAll } from './jobs-by-rules.ts';
import { rowById } from './row-by-id.ts';

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
  { rule }: Config['summary'],
  { workingDir }: Pick<Io, 'workingDir'>,
): Promise<Rules> {
  const bySubscription = await loadSummaryRules(workingDir);
  const otherwise = plainSummaryRule(rule);
  const areOff = areAllOff([otherwise, ...bySubscription.values()]);
  return { of: compileRules(bySubscription, otherwise), areOff };
}

export async function wantedTask(
  jobs: NewSummaryJob[],
  { summaries, nowUs }: SummaryWorld,
): Promise<Task> {
  const { ids } = await summaries.enqueue({ jobs, waitingMax, atUs: nowUs() });
  return { ids, nothing: nothingWanted };
}

/** What is said where flags ask for nothing that is there. */
export const nothingWanted =
  'Nothing to write: no product was received in this time, or none matches.';

/** Everything that is due after the rules have been looked up. */
export async function dueTask(
  rules: Rules,
  world: SummaryWorld,
  { signal }: Pick<Io, 'signal'>,
): Promise<Task> {
  await collectAll(world, rules.of, signal);
  return { ids: undefined, nothing: nothingDue(rules) };
}

/** What is said where the rules ask for nothing now. */
export function nothingDue({ areOff }: Rules): string {
  return areOff
    ? 'No rule asks for summaries: set EARSHOT_SUMMARY, or `summary` in earshot.config.ts. Without a rule: `earshot summarize --each --since 24h`'
    : 'Nothing was due. For what came before there were rules: `earshot summarize --each --since 24h`';
}

/** Those that failed or were dropped, and those named whose text is not verified. */
export async function retryTask(
  wanted: number[] | 'all',
  { summaries, nowUs }: SummaryWorld,
  { stderr }: Pick<Io, 'stderr'>,
): Promise<Task> {
  const count = await summaries.retry({ ids: wanted, nowUs: nowUs() });
  if (count > 0) stderr.write(`${count} to be tried again.\n`);
  const nothing =
    'Nothing to retry. Only failed and dropped summaries, or unverified ones named by id, can be retried: `earshot query summaries --state failed` shows them.';
  if (wanted === 'all') return { ids: count === 0 ? [] : undefined, nothing };
  const due = await summaries.due({ nowUs: nowUs(), limit: wanted.length, ids: wanted });
  const ids = due.map(({ id }) => id);
  const others = wanted.filter((id) => !ids.includes(id)).slice(0, othersMax);
  for (const id of others) stderr.write(`${await whyNot(id, summaries)}\n`);
  return { ids, nothing };
}

/** More of the ids that cannot be tried again are not told. */
const othersMax = 20;

async function whyNot(id: number, summaries: Pick<SummaryReader, 'find'>): Promise<string> {
  const row = await rowById(id, summaries);
  if (row === null) return `There is no summary #${id}.`;
  const { state, text } = row;
  return `#${id} is ${state}${text?.verified && state === 'done' ? ' and verified' : ''}.`;
}
