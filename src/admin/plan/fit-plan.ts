/** Puts the steps of a plan in an order that the account's limits allow, or says why none does. */
import { AppError } from '../../domain/app-error.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import type { Plan, PlanStep, ReplacementWay } from './plan.ts';

/** Specification, Limits; configurable, as they have changed before (facts, catalogue 1.3). */
export interface AccountLimits {
  runningMax: number;
  totalMax: number;
}

/** What the account holds, while the steps are gone through in thought. */
interface Counts {
  running: number;
  total: number;
}

/** What makes room comes first, what needs room last. */
function rankOf(step: PlanStep): number {
  switch (step.kind) {
    case 'delete':
    case 'forget':
      return 0;
    case 'edit':
      return step.edit.status === 'paused' ? 1 : step.edit.status === undefined ? 2 : 6;
    case 'adopt':
      return 2;
    case 'replace':
      return step.desired.status === 'paused' ? 3 : 4;
    case 'create':
      return step.desired.status === 'paused' ? 5 : 6;
  }
}

/** Of two replacements, the one that leaves fewer behind comes first. */
function compare(a: PlanStep, b: PlanStep): number {
  const [one, other] = [changeBy(a), changeBy(b)];
  return rankOf(a) - rankOf(b) || one.running - other.running || one.total - other.total;
}

/**
 * The same plan with its steps in order and the way of each replacement chosen. `excess` tells what
 * goes beyond the limits, one sentence each; then the plan must not be applied.
 */
export function fitPlan(
  plan: Plan,
  { runningMax, totalMax }: AccountLimits,
): { plan: Plan; excess: string[] } {
  const counts = { ...plan.counts };
  const excess: string[] = [];
  const steps = plan.steps.toSorted(compare).map((step) => {
    const fitted = withWay(step, counts, { runningMax, totalMax });
    const before = { ...counts };
    count(fitted, counts);
    const name = step.kind === 'delete' || step.kind === 'forget' ? step.name : step.desired.name;
    if (counts.running > runningMax && counts.running > before.running) {
      excess.push(
        `"${name}" would be running subscription number ${counts.running}; the catalogue lets ${runningMax} run.`,
      );
    }
    if (counts.total > totalMax && counts.total > before.total) {
      excess.push(
        `"${name}" would be subscription number ${counts.total}; the catalogue allows ${totalMax} for an account.`,
      );
    }
    return fitted;
  });
  return { plan: { ...plan, steps }, excess };
}

function withWay(step: PlanStep, counts: Counts, limits: AccountLimits): PlanStep {
  if (step.kind !== 'replace') return step;
  return { ...step, way: wayOf(step, counts, limits) };
}

function wayOf(
  { desired, ready, old }: Extract<PlanStep, { kind: 'replace' }>,
  { running, total }: Counts,
  { runningMax, totalMax }: AccountLimits,
): ReplacementWay {
  if (ready === null && total >= totalMax) return 'delete-first';
  if (desired.status === 'paused' || ready?.status === 'running') return 'overlap';
  // Where nothing of it runs, there is nothing that could be missed by changing places.
  const someRun = old.some(isRunning);
  return running < runningMax || !someRun ? 'overlap' : 'switch';
}

function changeBy(step: PlanStep): Counts {
  const change = { running: 0, total: 0 };
  count(step, change);
  return change;
}

function count(step: PlanStep, counts: Counts): void {
  if (step.kind === 'delete') {
    counts.total -= 1;
    counts.running -= isRunning(step.current) ? 1 : 0;
  } else if (step.kind === 'create') {
    counts.total += 1;
    counts.running += step.desired.status === 'running' ? 1 : 0;
  } else if (step.kind === 'edit' && step.edit.status !== undefined) {
    counts.running += Number(step.edit.status === 'running') - Number(isRunning(step.current));
  } else if (step.kind === 'replace') {
    const ready = step.ready !== null && isRunning(step.ready) ? 1 : 0;
    counts.total += (step.ready === null ? 1 : 0) - step.old.length;
    counts.running += Number(step.desired.status === 'running') - ready;
    counts.running -= step.old.filter(isRunning).length;
  }
}

/** Throws `conflict` when no further subscription of the account may run. */
export function requireRoomToRun(
  listed: readonly CatalogueSubscription[],
  { runningMax }: AccountLimits,
): void {
  const running = listed.filter(isRunning).length;
  if (running < runningMax) return;
  throw new AppError(
    'conflict',
    `${running} subscriptions run in the account, and the catalogue lets ${runningMax} run, so it stays paused.`,
    { advice: 'Pause one first.' },
  );
}

function isRunning({ status }: CatalogueSubscription): boolean {
  return status === 'running';
}
