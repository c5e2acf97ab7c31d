/** Does the steps of a plan, each remembered in the store, so that a cut can be gone on from. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Registration } from '../domain/account.ts';
import { isAppError } from '../domain/app-error.ts';
import {
  type DesiredSubscription,
  endpointOf,
  subscriptionEvents,
} from '../domain/subscription.ts';
import { differencesOf, isSameEndpoint, type PlannedEdit, type PlanStep } from './plan.ts';
import {
  gapOf,
  historyEntry,
  nowRunning,
  registrationFor,
  type StepWorld,
  seenRunning,
  withCredentials,
  withIntent,
} from './plan-context.ts';
import type {
  CatalogueSubscription,
  NewSubscription,
  SubscriptionClient,
} from './subscription-client.ts';

type Step<Kind extends PlanStep['kind']> = Extract<PlanStep, { kind: Kind }>;

/** Applies one step. Rejects with what the client or the store rejects with; may be called again. */
export function applyStep(step: PlanStep, world: StepWorld): Promise<void> {
  switch (step.kind) {
    case 'create':
      return create(step, world);
    case 'adopt':
      return adopt(step, world);
    case 'edit':
      return edit(step, world);
    case 'replace':
      return replaceSubscription(step, world);
    case 'delete':
      return remove(step, world);
    case 'forget':
      return forget(step, world);
  }
}

async function create({ desired }: Step<'create'>, world: StepWorld): Promise<void> {
  const { administration, nowUs } = world;
  const { name, status } = desired;
  const beganAtUs = nowUs();
  const registration = await registrationFor(desired, world);
  const intent = { ...registration, subscriptionId: null };
  const ranUntilUs = registration.runningSeenAtUs;
  const openGap = ranUntilUs === null ? null : gapOf(desired, ranUntilUs, 'it was gone');
  const { id } = await withIntent(intent, world, () => createOnce(desired, world), { openGap });
  const recreated = registration.subscriptionId !== null || ranUntilUs !== null;
  await administration.commit({
    save: {
      ...registration,
      ...withCredentials(world),
      ...(status === 'running' ? nowRunning(beganAtUs) : { pausedSeenAtUs: nowUs() }),
      notifiedAtUs: nowUs(),
      subscriptionId: id,
      unfinished: false,
    },
    ...(status === 'running' ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    history: [
      historyEntry({ name, id }, recreated ? 'recreated' : 'created', `made, ${status}`, {
        ...world,
        // Not after the answer: pushes may come before it, and events are expected from here on.
        nowUs: () => Math.min(beganAtUs, nowUs()),
      }),
    ],
  });
}

async function adopt({ desired, current }: Step<'adopt'>, world: StepWorld): Promise<void> {
  const { name, status } = desired;
  const registration = await registrationFor(desired, world);
  const running = status === 'running';
  await world.administration.commit({
    save: {
      ...registration,
      ...(running ? seenRunning(registration, world.listedAtUs) : {}),
      subscriptionId: current.id,
      unfinished: false,
    },
    ...(running ? { closeGaps: { subscription: name, toUs: world.nowUs() } } : {}),
    history: [historyEntry({ name, id: current.id }, 'adopted', 'it is as wanted', world)],
  });
}

async function edit(step: Step<'edit'>, world: StepWorld): Promise<void> {
  const { desired, current, edit: planned } = step;
  const { name } = desired;
  const { administration, listedAtUs, nowUs } = world;
  const registration = await registrationToEdit(step, world);
  const beganAtUs = nowUs();
  await requestEdit(step, registration, world);
  const { status } = planned;
  const runs = (status ?? current.status) === 'running';
  await administration.commit({
    save: {
      ...registration,
      ...(planned.credentials ? withCredentials(world) : {}),
      ...(runs ? seenRunning(registration, listedAtUs) : {}),
      ...(status === 'running' ? nowRunning(beganAtUs) : {}),
      ...(status === 'paused' ? { pausedSeenAtUs: nowUs() } : {}),
      unfinished: registration.subscriptionId !== current.id,
    },
    ...(runs ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    history: [historyEntry({ name, id: current.id }, actionOf(step), told(planned), world)],
  });
}

async function registrationToEdit(
  { desired, current }: Step<'edit'>,
  world: StepWorld,
): Promise<Registration> {
  const registration = await registrationFor(desired, world, current);
  const { subscriptionId } = registration;
  // Another one that is remembered and still there is replaced next: until then its Id is needed.
  const isThere = world.listed.some(
    ({ id, status }) => id === subscriptionId && status !== 'cancelled',
  );
  if (isThere) return registration;
  return { ...registration, credentialsDigest: null, subscriptionId: current.id };
}

/** What is wanted, and since when events are missed, is remembered before the request. */
async function requestEdit(
  { desired, current, edit: { status, endpoint, credentials: given } }: Step<'edit'>,
  registration: Registration,
  world: StepWorld,
): Promise<void> {
  const { client, administration, credentials, actor, nowUs } = world;
  const request = () =>
    client.edit(current.id, {
      ...(status === undefined ? {} : { status }),
      ...(endpoint === undefined ? {} : { endpoint }),
      ...(given === undefined ? {} : { credentials }),
    });
  const missedFromUs = registration.runningSeenAtUs ?? current.lastNotificationAtUs;
  const openGap =
    status === 'paused'
      ? gapOf(desired, nowUs(), 'paused')
      : status === undefined || missedFromUs === null
        ? null
        : gapOf(desired, missedFromUs, 'it was paused');
  if (actor !== 'maintain' || registration.unfinished) {
    return withIntent(registration, world, request, { openGap });
  }
  // Maintenance looks again by itself; what it did not begin, it would not have to finish.
  if (openGap !== null) await administration.commit({ openGap });
  return request();
}

function actionOf({ edit: { status }, adopted }: Step<'edit'>) {
  if (status === 'running') return 'resumed';
  if (status === 'paused') return 'paused';
  return adopted ? 'adopted' : 'changed';
}

function told({ status, endpoint, credentials }: PlannedEdit): string {
  return [
    ...(status === undefined ? [] : [`now ${status}`]),
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(credentials === undefined ? [] : ['credentials given']),
  ].join(', ');
}

async function remove({ name, current }: Step<'delete'>, world: StepWorld): Promise<void> {
  await world.client.delete(current.id);
  await world.administration.commit({
    history: [historyEntry({ name, id: current.id }, 'deleted', 'no longer wanted', world)],
    closeGaps: { subscription: name, toUs: world.nowUs() },
  });
}

function forget({ name }: Step<'forget'>, world: StepWorld): Promise<void> {
  return world.administration.commit({
    forget: name,
    history: [historyEntry({ name, id: null }, 'forgotten', 'no longer wanted', world)],
    // A deletion before may have been cut short.
    closeGaps: { subscription: name, toUs: world.nowUs() },
  });
}

const triesMax = 3;

/** A request that was cut off may still be at work: time before the account is looked at. */
const lookAfterDefaultMs = 1_500;

/**
 * Resolves with the subscription that was made. Rejects as `create` does; with `unavailable` when it
 * is still not there after the last try.
 */
export async function createOnce(
  { name, events, filter, status }: DesiredSubscription,
  { client, publicUrl, credentials, listed, random, lookAfterMs }: StepWorld,
): Promise<CatalogueSubscription> {
  const endpoint = endpointOf(publicUrl, name);
  const wanted = { events, filter, status, endpoint, credentials };
  const knownIds = new Set(listed.map(({ id }) => id));
  const isIt = (one: CatalogueSubscription) =>
    !knownIds.has(one.id) &&
    one.status !== 'cancelled' &&
    isSameEndpoint(one.endpoint, endpoint) &&
    differencesOf(wanted, one).length === 0;
  for (let tries = 1; ; tries += 1) {
    const { created, failure, isRefused } = await attempt(client, wanted);
    if (created !== null) return created;
    if (isRefused && tries === 1) throw failure;
    await delay((lookAfterMs ?? lookAfterDefaultMs) * (1 + random()));
    const found = (await client.list()).find(isIt);
    if (found !== undefined) return found;
    // An earlier try that was still at work may have taken the place that this one was refused.
    if (isRefused || tries === triesMax) throw failure;
  }
}

/** One try. Unless it is refused, it is not known after a failure whether the subscription exists. */
async function attempt(client: SubscriptionClient, wanted: NewSubscription) {
  try {
    const created = await client.create(wanted);
    const failure = new Error('The answer to the creation could not be read.');
    return { created, failure, isRefused: false };
  } catch (failure) {
    return { created: null, failure, isRefused: !isAppError(failure, 'unavailable') };
  }
}

type Replacement = Extract<PlanStep, { kind: 'replace' }>;

/**
 * Goes on from wherever an earlier try was cut: what is there already is not made again. The Id of the
 * old one stays remembered until it is deleted, so that it cannot be taken for a stranger's.
 */
async function replaceSubscription(step: Replacement, world: StepWorld): Promise<void> {
  const { desired, old, ready, way } = step;
  const { client, administration, nowUs } = world;
  const registration = await registrationFor(desired, world);
  const running = desired.status === 'running';
  const beganAtUs = nowUs();
  const stoodStill = ![...old, ready].some((one) => one?.status === 'running');
  const stillFromUs = running && stoodStill ? registration.runningSeenAtUs : null;
  if (stillFromUs !== null) {
    await administration.commit({ openGap: gapOf(desired, stillFromUs, 'it was paused') });
  }
  const fresh = ready ?? (await makeNew(step, registration, world));
  if (ready !== null) await administration.commit({ save: { ...registration, unfinished: true } });
  if (fresh.status !== desired.status) {
    if (way === 'switch') await changePlaces(fresh, step, world);
    else await client.edit(fresh.id, { status: desired.status });
  }
  if (way !== 'delete-first') for (const { id } of old) await client.delete(id);
  await administration.commit({
    save: {
      ...registration,
      ...(ready === null ? { ...withCredentials(world), notifiedAtUs: nowUs() } : {}),
      ...(running ? nowRunning(beganAtUs) : {}),
      subscriptionId: fresh.id,
      unfinished: false,
    },
    ...(running ? { closeGaps: { subscription: desired.name, toUs: nowUs() } } : {}),
    history: [historyEntry({ ...desired, id: fresh.id }, 'replaced', whyOf(step), world)],
  });
}

/** Creates the new one: as it is wanted, or paused where a moment has to be chosen. */
function makeNew(
  step: Replacement,
  registration: Registration,
  world: StepWorld,
): Promise<CatalogueSubscription> {
  const { desired, way } = step;
  if (way === 'delete-first') return makeRoomFirst(step, registration, world);
  const status = way === 'switch' ? 'paused' : desired.status;
  return withIntent(registration, world, () => createOnce({ ...desired, status }, world));
}

/** In a full account the old one goes first; should the new one be refused, it is made anew. */
async function makeRoomFirst(
  { desired, old }: Replacement,
  registration: Registration,
  world: StepWorld,
): Promise<CatalogueSubscription> {
  const { client, administration, nowUs } = world;
  const { name } = desired;
  const missed = old.find(({ status }) => status === 'running');
  const beganAtUs = nowUs();
  const reason = 'replaced in a full account';
  // Of the old one: until the new one is accepted, that is what is missed.
  const openGap = missed === undefined ? null : gapOf({ name, ...missed }, beganAtUs, reason);
  const make = async () => {
    for (const { id } of old) {
      await client.delete(id);
      const history = [historyEntry({ name, id }, 'deleted', 'to make room', world)];
      await administration.commit({ history });
    }
    return createOnce(desired, world);
  };
  try {
    const fresh = await withIntent(registration, world, make, { oldIsGone: true, openGap });
    if (missed === undefined) return fresh;
    const closeGaps = { subscription: name, toUs: nowUs() };
    await administration.commit({ closeGaps });
    await administration.commit({ openGap: gapOf(desired, beganAtUs, reason), closeGaps });
    return fresh;
  } catch (error) {
    const [first] = old;
    const isRefused = isAppError(error) && error.code !== 'unavailable';
    if (!isRefused || first === undefined) throw error;
    await makeAnew(name, missed ?? first, world);
    const told = 'There was no room for both, so the old one was deleted first. It was made anew.';
    throw error.with({ details: [...error.details, told] });
  }
}

/** Puts back what was deleted in vain. */
async function makeAnew(name: string, old: CatalogueSubscription, world: StepWorld): Promise<void> {
  const { administration, nowUs } = world;
  const events = subscriptionEvents.filter((event) => old.events.includes(event));
  const status = old.status === 'running' ? 'running' : 'paused';
  const desired = { name, events, filter: old.filter, status } as const;
  const beganAtUs = nowUs();
  const registration = await registrationFor(desired, world);
  const { id } = await createOnce(desired, world);
  await administration.commit({
    save: {
      ...registration,
      ...withCredentials(world),
      ...(status === 'running' ? nowRunning(beganAtUs) : {}),
      subscriptionId: id,
      notifiedAtUs: nowUs(),
      unfinished: false,
    },
    ...(status === 'running' ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    history: [historyEntry({ name, id }, 'recreated', 'its replacement was refused', world)],
  });
}

/** Only one of them may run: a gap begins before the old one stops, and is remembered first. */
async function changePlaces(
  fresh: CatalogueSubscription,
  { desired, old }: Replacement,
  { client, administration, nowUs }: StepWorld,
): Promise<void> {
  await administration.commit({
    openGap: gapOf(desired, nowUs(), 'replaced where only one of the two may run'),
  });
  const stopped = old.filter(({ status }) => status === 'running');
  for (const { id } of stopped) await client.edit(id, { status: 'paused' });
  try {
    await client.edit(fresh.id, { status: 'running' });
  } catch (error) {
    // Better the old filter than nothing; should this fail too, the first reason is the one to tell.
    const restarts = stopped.map(({ id }) => client.edit(id, { status: 'running' }));
    await Promise.allSettled(restarts);
    throw error;
  }
}

function whyOf({ differs, old, way }: Replacement): string {
  const ids = old.map(({ id }) => id).join(', ');
  const what = differs.length === 0 ? 'there were two' : `other ${differs.join(' and ')}`;
  const how = { overlap: '', switch: ', after a short gap', 'delete-first': ', with a gap' }[way];
  return `${what}; ${ids} is gone${how}`;
}
