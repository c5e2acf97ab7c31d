/** What the rules ask for: noted as jobs, or, for a look without consequences, only found. */
import { type NewSummaryJob, type SummaryJob, summaryReader } from '../../domain/summaries.ts';
import { collectJobs, waitingMax } from '../../summary/worker/collect-jobs.ts';
import type { RuleOf } from '../../summary/worker/compiled-rule.ts';
import type { SummaryWorld } from '../../summary/worker/summary-world.ts';

/** Reads the log to its end, as a receiver would. */
export async function collectAll(
  world: SummaryWorld,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<void> {
  let more = true;
  while (more && !signal.aborted) more = await collectJobs(world, ruleOf);
}

/** The jobs that would be due after `collectAll`; neither they nor the cursor are kept. */
export async function dueAfterCollecting(
  world: SummaryWorld,
  ruleOf: RuleOf,
  signal: AbortSignal,
): Promise<(NewSummaryJob | SummaryJob)[]> {
  const { notifications, summaries } = world;
  const nowUs = world.nowUs();
  const jobs = new Map<string, NewSummaryJob>();
  const note = (more: readonly NewSummaryJob[]) => {
    for (const job of more) jobs.set(`${job.kind} ${job.subject}`, job);
  };
  note(await summaries.due({ nowUs, limit: waitingMax }));
  let position = await notifications.cursor(summaryReader);
  const forgetful: SummaryWorld = {
    ...world,
    notifications: {
      find: (query) => notifications.find(query),
      lastPosition: () => notifications.lastPosition(),
      cursor: async () => position,
    },
    summaries: {
      ...summaries,
      enqueue: async ({ jobs: more, cursor }) => {
        note(more);
        position = cursor?.position ?? position;
        return { ids: [], dropped: 0 };
      },
    },
    takeLock: async () => () => undefined,
  };
  await collectAll(forgetful, ruleOf, signal);
  return [...jobs.values()].filter(({ dueAtUs }) => dueAtUs <= nowUs);
}
