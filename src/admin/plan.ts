/** Compares the desired state with the account, and plans the steps that remove the differences. */
import type { Registration } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import {
  type DesiredSubscription,
  endpointFor,
  nameInEndpoint,
  type RequestedStatus,
  sortedEvents,
  subscriptionEvents,
} from '../domain/subscription.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** Properties of a subscription to edit. */
export interface PlannedEdit {
  status?: RequestedStatus;
  endpoint?: string;
  credentials?: true;
}

/**
 * How a subscription is replaced, as its filter and events cannot be edited. `overlap`: the new one
 * runs before the old one is deleted. `switch`: the new one is created paused, then the old one is
 * paused and the new one resumed. `delete-first`: the account limit does not allow both.
 */
export type ReplacementWay = 'overlap' | 'switch' | 'delete-first';

/** Properties that cannot be edited. */
export type Difference = 'type' | 'filter' | 'events';

export type PlanStep =
  | { kind: 'create'; desired: DesiredSubscription }
  | { kind: 'adopt'; desired: DesiredSubscription; current: CatalogueSubscription }
  | {
      kind: 'edit';
      desired: DesiredSubscription;
      current: CatalogueSubscription;
      edit: PlannedEdit;
      /** True when the store did not know its Id. */
      adopted: boolean;
    }
  | {
      kind: 'replace';
      desired: DesiredSubscription;
      old: CatalogueSubscription[];
      /** The new one, if an interrupted replacement has already created it. */
      ready: CatalogueSubscription | null;
      differs: Difference[];
      way: ReplacementWay;
    }
  | { kind: 'delete'; name: string; current: CatalogueSubscription }
  | { kind: 'forget'; name: string };

/** Returns the name of the subscription that a step changes. */
export function nameOf(step: PlanStep): string {
  return 'desired' in step ? step.desired.name : step.name;
}

export interface Plan {
  /** In the order of execution. */
  steps: PlanStep[];
  /** Names without differences. */
  unchanged: string[];
  /** Managed names that are not in the desired state; kept unless pruned. */
  obsolete: string[];
  unmanaged: CatalogueSubscription[];
  /** Counts of the account before the first step. */
  counts: { running: number; total: number };
}

export interface PlanInput {
  desired: readonly DesiredSubscription[];
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  publicUrl: string | null;
  movedFrom?: string | undefined;
  /** Adopts unmanaged pull subscriptions with the desired events and filter; otherwise only those of a change that was interrupted. */
  adoptsPull: boolean;
  /** Deletes obsolete subscriptions. */
  prune: boolean;
  /** True when the catalogue already has the desired credentials. */
  hasCredentials: (registration: Registration) => boolean;
}

/** Makes the plan. `fitPlan` then checks the limits and chooses the way of each replacement. */
export function makePlan(input: PlanInput): Plan {
  const { desired, listed, registrations, prune } = input;
  const { managed, unmanaged } = sortAccount(listed, input);
  const known = new Map(registrations.map((one) => [one.name, one]));
  const free = adoptablePull(unmanaged);
  const steps: PlanStep[] = [];
  const unchanged: string[] = [];
  for (const one of desired) {
    const registration = known.get(one.name);
    const own = managed.get(one.name) ?? [];
    const which = adoptable(one, own, registration, input);
    const adopted = which === null ? [] : free.take(one, which);
    const planned = planOne(one, [...own, ...adopted], registration, input);
    steps.push(...planned);
    if (planned.length === 0) unchanged.push(one.name);
  }
  const desiredNames = new Set(desired.map(({ name }) => name));
  const obsolete = [...new Set([...managed.keys(), ...known.keys()])].filter(
    (name) => !desiredNames.has(name),
  );
  for (const name of prune ? obsolete : []) {
    for (const current of managed.get(name) ?? []) steps.push({ kind: 'delete', name, current });
    if (known.has(name)) steps.push({ kind: 'forget', name });
  }
  const alive = listed.filter(({ status }) => status !== 'cancelled');
  const running = alive.filter(({ status }) => status === 'running').length;
  const counts = { running, total: alive.length };
  return { steps, unchanged, obsolete, unmanaged: free.rest(), counts };
}

/**
 * Returns which unmanaged subscriptions are adopted; null for none. A pull subscription has neither a name nor an
 * endpoint: without its registration, it is identified by its events and its filter. After an interrupted change, only
 * an `unread` one may be its result.
 */
function adoptable(
  desired: DesiredSubscription,
  own: readonly CatalogueSubscription[],
  registration: Registration | undefined,
  { adoptsPull }: PlanInput,
): 'any' | 'unread' | null {
  if (desired.type !== 'pull') return null;
  if (own.some((one) => differencesOf(desired, one).length === 0)) return null;
  if (adoptsPull && own.length === 0) return 'any';
  return registration?.unfinished === true ? 'unread' : null;
}

/** Unmanaged pull subscriptions, each of which is adopted at most once. */
function adoptablePull(unmanaged: readonly CatalogueSubscription[]) {
  const rest = [...unmanaged];
  return {
    take: (desired: DesiredSubscription, which: 'any' | 'unread'): CatalogueSubscription[] => {
      const index = rest.findIndex(
        (one) =>
          differencesOf(desired, one).length === 0 &&
          (which === 'any' || (one.lastNotificationAtUs ?? 0) <= (one.submittedAtUs ?? 0)),
      );
      return index === -1 ? [] : rest.splice(index, 1);
    },
    rest: () => rest,
  };
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
  const isRegistered = registration !== undefined && registration.subscriptionId === current.id;
  const edit: PlannedEdit = {};
  const endpoint = endpointFor(publicUrl, desired);
  if (endpoint !== null) {
    if (!isSameEndpoint(current.endpoint, endpoint)) edit.endpoint = endpoint;
    // The credentials of an unregistered subscription are not known.
    if (!isRegistered || !hasCredentials(registration)) edit.credentials = true;
  }
  if (current.status !== desired.status && rest.length === 0) edit.status = desired.status;
  const adopted = !isRegistered;
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

/** Sorts by: matches the desired state, registered, running, oldest. */
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

/** Returns the differences that cannot be edited. */
export function differencesOf(
  desired: { type: string; events: readonly string[]; filter: string },
  current: { type: string; events: readonly string[]; filter: string },
): Difference[] {
  const sameEvents = sortedEvents(desired.events).join() === sortedEvents(current.events).join();
  const sameFilter = desired.filter.trim() === current.filter.trim();
  return [
    ...(desired.type === current.type ? [] : (['type'] as const)),
    ...(sameEvents ? [] : (['events'] as const)),
    ...(sameFilter ? [] : (['filter'] as const)),
  ];
}

/** True when the registration in the store is already equal. */
function isRecorded(
  desired: DesiredSubscription,
  current: CatalogueSubscription,
  registration: Registration | undefined,
): boolean {
  return (
    registration !== undefined &&
    registration.subscriptionId === current.id &&
    !registration.unfinished &&
    registration.status === desired.status &&
    differencesOf(desired, registration).length === 0
  );
}

export function isSameEndpoint(one: string | null, other: string | null): boolean {
  if (one === null || other === null) return one === other;
  return URL.parse(one)?.href === URL.parse(other)?.href;
}

/**
 * Sorts the subscriptions of an account. Managed are those whose Id is registered, or whose endpoint
 * is under the public URL or under `movedFrom`, an earlier one. `managed` has at least one per name,
 * and more while a replacement is unfinished. Cancelled ones are left out: they no longer exist.
 */
export function sortAccount(
  listed: readonly CatalogueSubscription[],
  known: {
    publicUrl: string | null;
    movedFrom?: string | undefined;
    registrations: readonly Registration[];
  },
) {
  const { publicUrl, movedFrom, registrations } = known;
  const registered = new Map(registrations.map((one) => [one.subscriptionId, one.name]));
  const managed = new Map<string, CatalogueSubscription[]>();
  const unmanaged: CatalogueSubscription[] = [];
  for (const subscription of listed) {
    const { id, endpoint, status } = subscription;
    if (status === 'cancelled') continue;
    const named = (url: string | null | undefined) =>
      endpoint === null || url == null ? null : nameInEndpoint(url, endpoint);
    const name = registered.get(id) ?? named(publicUrl) ?? named(movedFrom);
    if (name === null) unmanaged.push(subscription);
    else managed.set(name, [...(managed.get(name) ?? []), subscription]);
  }
  return { managed, unmanaged };
}

/** Returns the managed push subscriptions of an account as desired state, for a store without registrations. */
export function desiredFromAccount(
  listed: readonly CatalogueSubscription[],
  publicUrl: string | null,
): DesiredSubscription[] {
  const { managed } = sortAccount(listed, { publicUrl, registrations: [] });
  return [...managed].flatMap(([name, [first]]) => {
    if (first === undefined) return [];
    const events = subscriptionEvents.filter((event) => first.events.includes(event));
    const status = first.status === 'paused' ? 'paused' : 'running';
    const { filter } = first;
    return events.length === 0 ? [] : [{ name, type: 'push', events, filter, status }];
  });
}

/** Specification, Limits; configurable, as they have changed before (facts, catalogue 1.3). */
export interface AccountLimits {
  runningMax: number;
  totalMax: number;
}

/** Counts of the account during the simulated steps. */
interface Counts {
  running: number;
  total: number;
}

/** Orders steps: those that reduce the counts first, those that increase them last. */
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

/** Puts steps that leave fewer subscriptions first, within the same rank. */
function compare(a: PlanStep, b: PlanStep): number {
  const [one, other] = [count(a), count(b)];
  return rankOf(a) - rankOf(b) || one.running - other.running || one.total - other.total;
}

/**
 * Sorts the steps and chooses the way of each replacement. `limitErrors` has one sentence for each
 * exceeded limit; such a plan must not be applied.
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
        `With "${name}", ${counts.running} subscriptions would be running; the maximum is ${runningMax}.`,
      );
    }
    if (counts.total > totalMax && counts.total > before.total) {
      limitErrors.push(
        `With "${name}", the account would have ${counts.total} subscriptions; the maximum is ${totalMax}.`,
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
  // While none of them runs, no event is received that could be missed.
  const someRun = old.some(isRunning);
  return running < runningMax || !someRun ? 'overlap' : 'switch';
}

/** Adds the effect of a step to the counts. */
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
    `The subscription stays paused: ${running} are running, and the maximum is ${runningMax}.`,
    { advice: 'Pause another one first.' },
  );
}

function isRunning({ status }: CatalogueSubscription): boolean {
  return status === 'running';
}
