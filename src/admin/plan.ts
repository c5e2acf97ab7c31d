/** Compares what is wanted with what the account holds, and lists the steps from one to the other. */
import type { Registration } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import {
  type DesiredSubscription,
  endpointOf,
  nameInEndpoint,
  type RequestedStatus,
  sortedEvents,
  subscriptionEvents,
} from '../domain/subscription.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** What of a subscription has to be edited. */
export interface PlannedEdit {
  status?: RequestedStatus;
  endpoint?: string;
  credentials?: true;
}

/**
 * How a subscription is replaced, as its filter and events cannot be edited. `overlap`: the new one
 * runs before the old one goes. `switch`: the new one is made paused, then the two change places
 * within a moment. `delete-first`: there is no room for both.
 */
export type ReplacementWay = 'overlap' | 'switch' | 'delete-first';

export type PlanStep =
  | { kind: 'create'; desired: DesiredSubscription }
  | { kind: 'adopt'; desired: DesiredSubscription; current: CatalogueSubscription }
  | {
      kind: 'edit';
      desired: DesiredSubscription;
      current: CatalogueSubscription;
      edit: PlannedEdit;
      /** It was not known to be ours by its Id. */
      adopted: boolean;
    }
  | {
      kind: 'replace';
      desired: DesiredSubscription;
      old: CatalogueSubscription[];
      /** The new one, when it was made before and the replacement was cut short. */
      ready: CatalogueSubscription | null;
      differs: ('filter' | 'events')[];
      way: ReplacementWay;
    }
  | { kind: 'delete'; name: string; current: CatalogueSubscription }
  | { kind: 'forget'; name: string };

/** The name of the subscription that a step is about. */
export function nameOf(step: PlanStep): string {
  return 'desired' in step ? step.desired.name : step.name;
}

export interface Plan {
  /** In the order in which they are done. */
  steps: PlanStep[];
  /** Names for which there is nothing to do. */
  unchanged: string[];
  /** Names that are ours and no longer wanted; they stay, unless pruned. */
  obsolete: string[];
  unmanaged: CatalogueSubscription[];
  /** The account before any step. */
  counts: { running: number; total: number };
}

export interface PlanInput {
  desired: readonly DesiredSubscription[];
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  publicUrl: string;
  movedFrom?: string | undefined;
  /** Deletes what is ours and no longer wanted. */
  prune: boolean;
  /** True when the catalogue was last given the credentials that are wanted. */
  hasCredentials: (registration: Registration) => boolean;
}

/** Makes the plan. Limits are looked at afterwards, by `fitPlan`, which also chooses the ways. */
export function makePlan(input: PlanInput): Plan {
  const { desired, listed, registrations, prune } = input;
  const { managed, unmanaged } = sortAccount(listed, input);
  const known = new Map(registrations.map((one) => [one.name, one]));
  const steps: PlanStep[] = [];
  const unchanged: string[] = [];
  for (const one of desired) {
    const planned = planOne(one, managed.get(one.name) ?? [], known.get(one.name), input);
    steps.push(...planned);
    if (planned.length === 0) unchanged.push(one.name);
  }
  const wanted = new Set(desired.map(({ name }) => name));
  const obsolete = [...new Set([...managed.keys(), ...known.keys()])].filter(
    (name) => !wanted.has(name),
  );
  for (const name of prune ? obsolete : []) {
    for (const current of managed.get(name) ?? []) steps.push({ kind: 'delete', name, current });
    if (known.has(name)) steps.push({ kind: 'forget', name });
  }
  const alive = listed.filter(({ status }) => status !== 'cancelled');
  const running = alive.filter(({ status }) => status === 'running').length;
  return { steps, unchanged, obsolete, unmanaged, counts: { running, total: alive.length } };
}

function planOne(
  desired: DesiredSubscription,
  candidates: readonly CatalogueSubscription[],
  registration: Registration | undefined,
  { publicUrl, hasCredentials }: PlanInput,
): PlanStep[] {
  const [current, ...rest] = bestFirst(desired, candidates, registration);
  if (current === undefined) return [{ kind: 'create', desired }];
  const differs = differencesOf(desired, current);
  const way = 'overlap';
  if (differs.length > 0) {
    return [{ kind: 'replace', desired, old: [current, ...rest], ready: null, differs, way }];
  }
  const isTheOne = registration !== undefined && registration.subscriptionId === current.id;
  const edit: PlannedEdit = {};
  const endpoint = endpointOf(publicUrl, desired.name);
  if (!isSameEndpoint(current.endpoint, endpoint)) edit.endpoint = endpoint;
  // With which credentials one was made that is not remembered, nobody knows.
  if (!isTheOne || !hasCredentials(registration)) edit.credentials = true;
  if (current.status !== desired.status && rest.length === 0) edit.status = desired.status;
  const adopted = !isTheOne;
  const steps: PlanStep[] = [];
  if (Object.keys(edit).length > 0) steps.push({ kind: 'edit', desired, current, edit, adopted });
  if (rest.length > 0) {
    const [first = current] = rest;
    const differsFrom = differencesOf(desired, first);
    steps.push({ kind: 'replace', desired, old: rest, ready: current, differs: differsFrom, way });
  } else if (steps.length === 0 && !isRecorded(desired, current, registration)) {
    steps.push({ kind: 'adopt', desired, current });
  }
  return steps;
}

/** The one that fits, and is remembered, and runs, and is oldest, stands first. */
function bestFirst(
  desired: DesiredSubscription,
  candidates: readonly CatalogueSubscription[],
  registration: Registration | undefined,
): CatalogueSubscription[] {
  const rank = (one: CatalogueSubscription) =>
    (differencesOf(desired, one).length === 0 ? 0 : 4) +
    (one.id === registration?.subscriptionId ? 0 : 2) +
    (one.status === 'running' ? 0 : 1);
  return candidates.toSorted(
    (a, b) => rank(a) - rank(b) || (a.submittedAtUs ?? 0) - (b.submittedAtUs ?? 0),
  );
}

/** What cannot be edited and is different. */
export function differencesOf(
  desired: { events: readonly string[]; filter: string },
  current: { events: readonly string[]; filter: string },
): ('filter' | 'events')[] {
  const events = sortedEvents(desired.events).join() === sortedEvents(current.events).join();
  const filter = desired.filter.trim() === current.filter.trim();
  return [...(events ? [] : (['events'] as const)), ...(filter ? [] : (['filter'] as const))];
}

/** True when the store remembers exactly this, so that nothing has to be written. */
function isRecorded(
  { events, filter, status }: DesiredSubscription,
  current: CatalogueSubscription,
  registration: Registration | undefined,
): boolean {
  return (
    registration !== undefined &&
    registration.subscriptionId === current.id &&
    !registration.unfinished &&
    registration.status === status &&
    differencesOf({ events, filter }, registration).length === 0
  );
}

export function isSameEndpoint(one: string | null, other: string): boolean {
  return one !== null && URL.parse(one)?.href === URL.parse(other)?.href;
}

/**
 * `ours`: by name, at least one each; more than one while a replacement is unfinished. Ours is a subscription whose Id is remembered, or whose endpoint is under our public URL, or under
 * an earlier one that the user names. Cancelled ones are gone and left out.
 */
export function sortAccount(
  listed: readonly CatalogueSubscription[],
  known: {
    publicUrl: string;
    movedFrom?: string | undefined;
    registrations: readonly Registration[];
  },
) {
  const { publicUrl, movedFrom, registrations } = known;
  const remembered = new Map(registrations.map((one) => [one.subscriptionId, one.name]));
  const managed = new Map<string, CatalogueSubscription[]>();
  const unmanaged: CatalogueSubscription[] = [];
  for (const subscription of listed) {
    const { id, endpoint, status } = subscription;
    if (status === 'cancelled') continue;
    const name =
      remembered.get(id) ??
      (endpoint === null ? null : nameInEndpoint(publicUrl, endpoint)) ??
      (endpoint === null || movedFrom === undefined ? null : nameInEndpoint(movedFrom, endpoint));
    if (name === null) unmanaged.push(subscription);
    else managed.set(name, [...(managed.get(name) ?? []), subscription]);
  }
  return { managed, unmanaged };
}

/** What an account holds of ours, as if it had been wanted so: for a store that remembers nothing. */
export function desiredFromAccount(
  listed: readonly CatalogueSubscription[],
  publicUrl: string,
): DesiredSubscription[] {
  const { managed } = sortAccount(listed, { publicUrl, registrations: [] });
  return [...managed].flatMap(([name, [first]]) => {
    if (first === undefined) return [];
    const events = subscriptionEvents.filter((event) => first.events.includes(event));
    const status = first.status === 'paused' ? 'paused' : 'running';
    return events.length === 0 ? [] : [{ name, events, filter: first.filter, status }];
  });
}

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
  const [one, other] = [count(a), count(b)];
  return rankOf(a) - rankOf(b) || one.running - other.running || one.total - other.total;
}

/**
 * The same plan with its steps in order and the way of each replacement chosen. `limitErrors` tells what
 * goes beyond the limits, one sentence each; then the plan must not be applied.
 */
export function fitPlan(plan: Plan, limits: AccountLimits): { plan: Plan; limitErrors: string[] } {
  const { runningMax, totalMax } = limits;
  const counts = { ...plan.counts };
  const limitErrors: string[] = [];
  const steps = plan.steps.toSorted(compare).map((step) => {
    const fitted = step.kind === 'replace' ? { ...step, way: wayOf(step, counts, limits) } : step;
    const before = { ...counts };
    count(fitted, counts);
    const name = nameOf(step);
    if (counts.running > runningMax && counts.running > before.running) {
      limitErrors.push(
        `"${name}" would be running subscription number ${counts.running}; the catalogue lets ${runningMax} run.`,
      );
    }
    if (counts.total > totalMax && counts.total > before.total) {
      limitErrors.push(
        `"${name}" would be subscription number ${counts.total}; the catalogue allows ${totalMax} for an account.`,
      );
    }
    return fitted;
  });
  return { plan: { ...plan, steps }, limitErrors };
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

/** What a step changes, or adds to counts that are given. */
function count(step: PlanStep, counts: Counts = { running: 0, total: 0 }): Counts {
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
  return counts;
}

/** Throws `conflict` when no further subscription of the account may run. */
export function requireRunningSlot(
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
