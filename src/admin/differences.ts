/** Compares the desired state with the account: the differences, and the one request that comes next. */

import { AppError } from '../core/terms/app-error.ts';
import {
  type DesiredSubscription,
  endpointFor,
  nameInEndpoint,
  type RequestedStatus,
  sortedEvents,
} from '../core/terms/subscription.ts';
import type { Registration } from './account.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

/** Properties of a subscription that can be edited. */
export interface Edit {
  status?: RequestedStatus;
  endpoint?: string;
  credentials?: true;
}

/**
 * How a subscription is replaced. `overlap`: the new one runs before the old one is deleted. `switch`: the new one is
 * created paused, then the old one is paused and the new one resumed. `delete-first`: the account is full.
 */
export type ReplacementWay = 'overlap' | 'switch' | 'delete-first';

/** Properties that cannot be edited. */
export type FixedProperty = 'type' | 'filter' | 'events';

/** The difference between the desired state of one name and the account. */
export interface Difference {
  name: string;
  /** Null if no subscription of the name is to exist. */
  desired: DesiredSubscription | null;
  /** The subscription that stays, if there is one, and what is to be edited of it. */
  current: CatalogueSubscription | null;
  edit: Edit;
  /** Subscriptions that are to be deleted, and how the first of them differs. */
  old: readonly CatalogueSubscription[];
  differs: readonly FixedProperty[];
  way: ReplacementWay;
  /** True if the store does not know the id of `current`. */
  adopted: boolean;
}

/** Specification, Limits; configurable, as they have changed before (facts, catalogue 1.3). */
export interface AccountLimits {
  runningMax: number;
  totalMax: number;
}

export interface Plan {
  /** In the order of execution. */
  differences: Difference[];
  /** Names without differences. */
  unchanged: string[];
  /** Managed names that are no longer configured; kept unless pruned. */
  obsolete: string[];
  unmanaged: readonly CatalogueSubscription[];
  /** Counts of the account. */
  counts: { running: number; total: number };
  /** True if the limits do not permit the desired state. */
  isTooLarge: boolean;
}

/** The desired state of an account, and how it may be reached. */
export interface ApplyOptions {
  desired: readonly DesiredSubscription[];
  /**
   * Names in `earshot.config.ts`, also of subscriptions that are not in `desired`; undefined if the origins do not
   * change.
   */
  namesInFile?: ReadonlySet<string>;
  /** Deletes obsolete subscriptions, or all of one managed name. */
  prune?: boolean | string;
  /**
   * Adopts unmanaged pull subscriptions with the desired events and filter. By default true; maintenance adopts nothing
   * without a decision of the user.
   */
  adoptsPull?: boolean;
  /** Changes nothing except the status of registered subscriptions. */
  onlyStatus?: boolean;
}

export interface PlanInput extends ApplyOptions {
  listed: readonly CatalogueSubscription[];
  registrations: readonly Registration[];
  publicUrl: string | null;
  limits: AccountLimits;
  /** True when the catalogue already has the desired credentials. */
  hasCredentials: (registration: Registration) => boolean;
}

/** Compares the desired state with the account. Pure. */
export function differencesOf(input: PlanInput): Plan {
  const { desired, listed, registrations, limits, prune, adoptsPull = true, namesInFile } = input;
  const { managed, unmanaged } = sortAccount(listed, input);
  const known = new Map(registrations.map((one) => [one.name, one]));
  const others = [...unmanaged];
  const found: Difference[] = [];
  const unchanged: string[] = [];
  for (const one of desired) {
    const own = [...(managed.get(one.name) ?? [])];
    const adopted = adoptsPull ? adoptable(one, own, others) : undefined;
    if (adopted !== undefined) own.push(...others.splice(others.indexOf(adopted), 1));
    const findDifference = input.onlyStatus ? statusDifferenceOf : differenceOf;
    const difference = findDifference(one, own, known.get(one.name), input);
    if (difference === null) unchanged.push(one.name);
    else found.push(difference);
  }
  const names = new Set(desired.map(({ name }) => name));
  const isConfigured = (name: string) =>
    names.has(name) || namesInFile?.has(name) || known.get(name)?.origin === 'flags';
  const present = [...new Set([...managed.keys(), ...known.keys()])];
  const obsolete = present.filter((name) => !isConfigured(name));
  for (const name of prune === true ? obsolete : present.filter((name) => name === prune)) {
    found.push({ ...nothing, name, desired: null, old: managed.get(name) ?? [] });
  }
  const counts = countsOf(listed);
  // What makes space comes first.
  const sorted = found
    .map((one) => ({ ...one, effect: effectOf(one) }))
    .toSorted((a, b) => a.effect.total - b.effect.total || a.effect.running - b.effect.running);
  let { running, total } = counts;
  const differences = sorted.map((one) => {
    const way = wayOf(one, { running, total }, limits);
    running += one.effect.running;
    total += one.effect.total;
    return { ...one, way };
  });
  // An account that is already beyond a limit may stay there.
  const isTooLarge =
    running > Math.max(limits.runningMax, counts.running) ||
    total > Math.max(limits.totalMax, counts.total);
  return { differences, unchanged, obsolete, unmanaged: others, counts, isTooLarge };
}

const nothing = {
  current: null,
  edit: {},
  old: [],
  differs: [],
  way: 'overlap',
  adopted: false,
} as const;

/**
 * A pull subscription has neither a name nor an endpoint: without its registration, it is recognized by its events and
 * its filter.
 */
function adoptable(
  desired: DesiredSubscription,
  own: readonly CatalogueSubscription[],
  others: readonly CatalogueSubscription[],
): CatalogueSubscription | undefined {
  if (desired.type !== 'pull' || own.some((one) => isMatch(desired, one))) return undefined;
  return others.find((one) => isMatch(desired, one));
}

/** Returns the difference of one name; null without one. */
export function differenceOf(
  desired: DesiredSubscription,
  candidates: readonly CatalogueSubscription[],
  registration: Registration | undefined,
  { publicUrl, hasCredentials }: Pick<PlanInput, 'publicUrl' | 'hasCredentials'>,
): Difference | null {
  const sorted = bestFirst(desired, candidates, registration);
  const [first] = sorted;
  const current = first !== undefined && isMatch(desired, first) ? first : null;
  const old = current === null ? sorted : sorted.slice(1);
  const differs = old[0] === undefined ? [] : fixedDifferences(desired, old[0]);
  const difference = { ...nothing, name: desired.name, desired, current, old, differs };
  if (current === null) return difference;
  const isRegistered = registration?.subscriptionId === current.id;
  const edit: Edit = {};
  const endpoint = endpointFor(publicUrl, desired);
  if (endpoint !== null) {
    if (URL.parse(current.endpoint ?? '')?.href !== new URL(endpoint).href)
      edit.endpoint = endpoint;
    // The credentials of an unregistered subscription are not known.
    if (!isRegistered || !hasCredentials(registration)) edit.credentials = true;
  }
  if (current.status !== desired.status) edit.status = desired.status;
  const isRecorded =
    isRegistered && registration.status === desired.status && isMatch(desired, registration);
  if (isRecorded && old.length === 0 && Object.keys(edit).length === 0) return null;
  return { ...difference, edit, adopted: !isRegistered };
}

/** Returns the difference of the status alone. Throws `not_found` if the account has no subscription with the registered id. */
function statusDifferenceOf(
  desired: DesiredSubscription,
  candidates: readonly CatalogueSubscription[],
  registration: Registration | undefined,
): Difference | null {
  const { name, status } = desired;
  const current = candidates.find(({ id }) => id === registration?.subscriptionId);
  if (current === undefined) {
    const message = `The subscription ${name} is not in the account as registered.`;
    const advice = 'To show the differences: `earshot register --dry-run`.';
    throw new AppError('not_found', message, { advice });
  }
  const isSame = current.status === status;
  if (isSame && registration?.status === status) return null;
  return { ...nothing, name, desired, current, edit: isSame ? {} : { status } };
}

/** Sorts by: matches the desired state, registered, running, oldest. */
function bestFirst(
  desired: DesiredSubscription,
  candidates: readonly CatalogueSubscription[],
  registration: Registration | undefined,
): CatalogueSubscription[] {
  const rank = (one: CatalogueSubscription) =>
    (isMatch(desired, one) ? 0 : 4) +
    (one.id === registration?.subscriptionId ? 0 : 2) +
    (one.status === 'running' ? 0 : 1);
  return candidates.toSorted(
    (a, b) => rank(a) - rank(b) || (a.submittedAtUs ?? 0) - (b.submittedAtUs ?? 0),
  );
}

type Defined = { type: string; events: readonly string[]; filter: string };

const isMatch = (desired: Defined, one: Defined) => fixedDifferences(desired, one).length === 0;

/** Returns the properties that differ and cannot be edited. */
export function fixedDifferences(desired: Defined, current: Defined): FixedProperty[] {
  const sameEvents = `${sortedEvents(desired.events)}` === `${sortedEvents(current.events)}`;
  const sameFilter = desired.filter.trim() === current.filter.trim();
  return [
    ...(desired.type === current.type ? [] : (['type'] as const)),
    ...(sameEvents ? [] : (['events'] as const)),
    ...(sameFilter ? [] : (['filter'] as const)),
  ];
}

/**
 * Sorts the subscriptions of an account. Managed are those whose id is registered, or whose endpoint is under the public
 * URL. Cancelled ones are left out: they no longer exist.
 */
export function sortAccount(
  listed: readonly CatalogueSubscription[],
  { publicUrl, registrations }: Pick<PlanInput, 'publicUrl' | 'registrations'>,
) {
  const registered = new Map<string | null, string>();
  for (const { name, subscriptionId, earlierIds } of registrations) {
    for (const id of [...earlierIds, subscriptionId]) registered.set(id, name);
  }
  const managed = new Map<string, CatalogueSubscription[]>();
  const unmanaged: CatalogueSubscription[] = [];
  for (const subscription of listed.filter(({ status }) => status !== 'cancelled')) {
    const { id, endpoint } = subscription;
    const named =
      endpoint === null || publicUrl === null ? null : nameInEndpoint(publicUrl, endpoint);
    const name = registered.get(id) ?? named;
    if (name === null) unmanaged.push(subscription);
    else managed.set(name, [...(managed.get(name) ?? []), subscription]);
  }
  return { managed, unmanaged };
}

/** Returns the numbers of subscriptions that count against the limits. */
export function countsOf(listed: readonly Pick<CatalogueSubscription, 'status'>[]) {
  const alive = listed.filter(({ status }) => status !== 'cancelled');
  return { running: alive.filter(isRunning).length, total: alive.length };
}

const isRunning = ({ status }: Pick<CatalogueSubscription, 'status'>) => status === 'running';

/** Returns the change of the counts when a difference is gone. */
function effectOf({ desired, current, old }: Difference): Plan['counts'] {
  const before = countsOf(current === null ? old : [current, ...old]);
  const after = { running: desired?.status === 'running' ? 1 : 0, total: desired === null ? 0 : 1 };
  return { running: after.running - before.running, total: after.total - before.total };
}

function wayOf(
  { desired, current, old }: Difference,
  { running, total }: Plan['counts'],
  { runningMax, totalMax }: AccountLimits,
): ReplacementWay {
  if (current === null && old.length > 0 && total >= totalMax) return 'delete-first';
  const starts = desired?.status === 'running' && current?.status !== 'running';
  return starts && old.some(isRunning) && running >= runningMax ? 'switch' : 'overlap';
}

/** A request to the catalogue; `record` needs none. */
export type Request =
  | { kind: 'create'; desired: DesiredSubscription; status: RequestedStatus }
  | { kind: 'edit'; current: CatalogueSubscription; edit: Edit }
  | { kind: 'delete'; current: CatalogueSubscription }
  | { kind: 'record' };

/**
 * Returns the next request, of the first difference that the limits permit to continue now. Throws `conflict` if they
 * permit none.
 */
export function nextRequest(
  { differences, counts }: Plan,
  limits: AccountLimits,
): { difference: Difference; request: Request } {
  for (const difference of differences) {
    const request = requestFor(difference, counts, limits);
    if (request !== null) return { difference, request };
  }
  throw limitReached(counts, limits);
}

function requestFor(
  { desired, current, edit: { status, ...rest }, old, way }: Difference,
  { running, total }: Plan['counts'],
  { runningMax, totalMax }: AccountLimits,
): Request | null {
  const [first] = old;
  if (desired !== null && current === null && (first === undefined || way !== 'delete-first')) {
    const state = way === 'switch' ? 'paused' : desired.status;
    if (total >= totalMax || (state === 'running' && running >= runningMax)) return null;
    return { kind: 'create', desired, status: state };
  }
  if (current !== null) {
    if (Object.keys(rest).length > 0) return { kind: 'edit', current, edit: rest };
    if (status === 'running' && running >= runningMax) {
      const runs = old.find(isRunning);
      if (runs !== undefined) return { kind: 'edit', current: runs, edit: { status: 'paused' } };
      // A duplicate that does not run may take the place that another difference needs first.
      return first === undefined ? null : { kind: 'delete', current: first };
    }
    if (status !== undefined) return { kind: 'edit', current, edit: { status } };
  }
  return first === undefined ? { kind: 'record' } : { kind: 'delete', current: first };
}

/** Returns the error `conflict` for an account whose limits do not permit a change. `obsolete` names can be deleted. */
export function limitReached(
  { running, total }: Plan['counts'],
  { runningMax, totalMax }: AccountLimits,
  obsolete: readonly string[] = [],
): AppError {
  const message = `The limits of the account do not permit the change: it may have ${runningMax} running subscriptions and ${totalMax} in total, and has ${running} and ${total}.`;
  const advice =
    'Pause or delete one first (`earshot subscriptions`), or register the new one with --status paused. If the limits of the catalogue have changed, set EARSHOT_SUBSCRIPTIONS_RUNNING_MAX and EARSHOT_SUBSCRIPTIONS_MAX.';
  const unused = `No longer configured: ${obsolete.join(', ')}. To delete: \`earshot register --prune\`.`;
  return new AppError('conflict', message, { advice, details: obsolete.length ? [unused] : [] });
}
