/** Applies the steps of a plan. Each is recorded in the store, so that an interrupted plan can be resumed. */

import { setTimeout as delay } from 'node:timers/promises';
import type { HistoryAction, Registration } from '../domain/account.ts';
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
  type StepContext,
  seenRunning,
  withIntent,
} from './plan-context.ts';
import type {
  CatalogueSubscription,
  NewSubscription,
  SubscriptionClient,
} from './subscription-client.ts';

type Step<Kind extends PlanStep['kind']> = Extract<PlanStep, { kind: Kind }>;

/** Applies one step. Rejects with the errors of the client and the store; may be called again. */
export function applyStep(step: PlanStep, context: StepContext): Promise<void> {
  switch (step.kind) {
    case 'create':
      return create(step, context);
    case 'adopt':
      return adopt(step, context);
    case 'edit':
      return edit(step, context);
    case 'replace':
      return replaceSubscription(step, context);
    case 'delete':
      return remove(step, context);
    case 'forget':
      return removeRegistration(step, context);
  }
}

interface Done {
  /** The resulting registration. */
  save: Registration;
  /** Id of the changed subscription; by default that of the registration. */
  id?: string | null;
  /** True if it is running now, which closes gaps. */
  runs: boolean;
  action: HistoryAction;
  what: string;
  /** Time of the history entry; now by default. */
  atUs?: number;
}

/** Records the result of a step. */
function commitDone(
  { save, id = save.subscriptionId, runs, action, what, atUs }: Done,
  context: StepContext,
): Promise<void> {
  const { name } = save;
  const { administration, nowUs } = context;
  const at = atUs === undefined ? context : { ...context, nowUs: () => atUs };
  return administration.commit({
    save,
    ...(runs ? { closeGaps: { subscription: name, toUs: nowUs() } } : {}),
    history: [historyEntry({ name, id }, action, what, at)],
  });
}

async function create({ desired }: Step<'create'>, context: StepContext): Promise<void> {
  const { credentialsDigest, nowUs } = context;
  const { status } = desired;
  const runs = status === 'running';
  const beganAtUs = nowUs();
  const registration = await registrationFor(desired, context);
  const intent = { ...registration, subscriptionId: null };
  const ranUntilUs = registration.runningSeenAtUs;
  const openGap = ranUntilUs === null ? null : gapOf(desired, ranUntilUs, 'it was deleted');
  const { id } = await withIntent(intent, context, () => createOnce(desired, context), { openGap });
  const recreated = registration.subscriptionId !== null || ranUntilUs !== null;
  const save = {
    ...registration,
    credentialsDigest,
    ...(runs ? nowRunning(beganAtUs) : { pausedSeenAtUs: nowUs() }),
    notifiedAtUs: nowUs(),
    subscriptionId: id,
    unfinished: false,
  };
  const action = recreated ? 'recreated' : 'created';
  // The time before the request: pushes may come before its answer, and events are expected from here.
  const atUs = Math.min(beganAtUs, nowUs());
  await commitDone({ save, runs, action, what: `status ${status}`, atUs }, context);
}

async function adopt({ desired, current }: Step<'adopt'>, context: StepContext): Promise<void> {
  const registration = await registrationFor(desired, context);
  const runs = desired.status === 'running';
  const save = {
    ...registration,
    ...(runs ? seenRunning(registration, context.listedAtUs) : {}),
    subscriptionId: current.id,
    unfinished: false,
  };
  await commitDone({ save, runs, action: 'adopted', what: 'no change needed' }, context);
}

async function edit(step: Step<'edit'>, context: StepContext): Promise<void> {
  const { current, edit: planned } = step;
  const { credentialsDigest, listedAtUs, nowUs } = context;
  const registration = await registrationToEdit(step, context);
  const beganAtUs = nowUs();
  await requestEdit(step, registration, context);
  const { status } = planned;
  const runs = (status ?? current.status) === 'running';
  const save = {
    ...registration,
    ...(planned.credentials ? { credentialsDigest } : {}),
    ...(runs ? seenRunning(registration, listedAtUs) : {}),
    ...(status === 'running' ? nowRunning(beganAtUs) : {}),
    ...(status === 'paused' ? { pausedSeenAtUs: nowUs() } : {}),
    unfinished: registration.subscriptionId !== current.id,
  };
  const { id } = current;
  await commitDone({ save, id, runs, action: actionOf(step), what: changesOf(planned) }, context);
}

async function registrationToEdit(
  { desired, current }: Step<'edit'>,
  context: StepContext,
): Promise<Registration> {
  const registration = await registrationFor(desired, context, current);
  const { subscriptionId } = registration;
  // If another one is registered and still exists, the next step replaces it and needs its Id.
  const isThere = context.listed.some(
    ({ id, status }) => id === subscriptionId && status !== 'cancelled',
  );
  if (isThere) return registration;
  return { ...registration, credentialsDigest: null, subscriptionId: current.id };
}

/** Records the desired state and the gap, then sends the request. */
async function requestEdit(
  { desired, current, edit: { status, endpoint, credentials: given } }: Step<'edit'>,
  registration: Registration,
  context: StepContext,
): Promise<void> {
  const { client, administration, credentials, actor, nowUs } = context;
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
    return withIntent(registration, context, request, { openGap });
  }
  // Maintenance lists the account in each round, and must not resume a change that was never sent.
  if (openGap !== null) await administration.commit({ openGap });
  return request();
}

function actionOf({ edit: { status }, adopted }: Step<'edit'>) {
  if (status === 'running') return 'resumed';
  if (status === 'paused') return 'paused';
  return adopted ? 'adopted' : 'changed';
}

function changesOf({ status, endpoint, credentials }: PlannedEdit): string {
  return [
    ...(status === undefined ? [] : [`now ${status}`]),
    ...(endpoint === undefined ? [] : [`endpoint ${endpoint}`]),
    ...(credentials === undefined ? [] : ['new credentials']),
  ].join(', ');
}

async function remove({ name, current }: Step<'delete'>, context: StepContext): Promise<void> {
  await context.client.delete(current.id);
  await context.administration.commit({
    history: [historyEntry({ name, id: current.id }, 'deleted', 'no longer configured', context)],
    closeGaps: { subscription: name, toUs: context.nowUs() },
  });
}

function removeRegistration({ name }: Step<'forget'>, context: StepContext): Promise<void> {
  return context.administration.commit({
    removeRegistration: name,
    history: [historyEntry({ name, id: null }, 'forgotten', 'no longer configured', context)],
    // An earlier deletion may have been interrupted.
    closeGaps: { subscription: name, toUs: context.nowUs() },
  });
}

const attemptsMax = 3;

/** Delay before listing the account: a request without an answer may still be in progress. */
const listDelayDefaultMs = 1_500;

/**
 * Creates a subscription and resolves with it. Rejects as `create` does, and with `unavailable` when
 * it does not exist after the last attempt.
 */
export async function createOnce(
  { name, events, filter, status }: DesiredSubscription,
  { client, publicUrl, credentials, listed, random, listDelayMs }: StepContext,
): Promise<CatalogueSubscription> {
  const endpoint = endpointOf(publicUrl, name);
  const desired = { events, filter, status, endpoint, credentials };
  const knownIds = new Set(listed.map(({ id }) => id));
  const isCreated = (one: CatalogueSubscription) =>
    !knownIds.has(one.id) &&
    one.status !== 'cancelled' &&
    isSameEndpoint(one.endpoint, endpoint) &&
    differencesOf(desired, one).length === 0;
  for (let attempts = 1; ; attempts += 1) {
    const { created, failure, isRefused } = await attempt(client, desired);
    if (created !== null) return created;
    if (isRefused && attempts === 1) throw failure;
    await delay((listDelayMs ?? listDelayDefaultMs) * (1 + random()));
    const found = (await client.list()).find(isCreated);
    if (found !== undefined) return found;
    // The refusal may come from an earlier attempt that was still in progress and reached the limit.
    if (isRefused || attempts === attemptsMax) throw failure;
  }
}

/** Sends the request once. After a failure other than a refusal, the subscription may exist. */
async function attempt(client: SubscriptionClient, desired: NewSubscription) {
  try {
    const created = await client.create(desired);
    const failure = new Error('The response to the create request could not be read.');
    return { created, failure, isRefused: false };
  } catch (failure) {
    return { created: null, failure, isRefused: !isAppError(failure, 'unavailable') };
  }
}

/**
 * Resumes an interrupted replacement: what exists is not created again. The Id of the old subscription stays
 * recorded until it is deleted, so that it cannot count as unmanaged.
 */
async function replaceSubscription(step: Step<'replace'>, context: StepContext): Promise<void> {
  const { desired, old, ready, way } = step;
  const { client, administration, credentialsDigest, nowUs } = context;
  const registration = await registrationFor(desired, context);
  const running = desired.status === 'running';
  const beganAtUs = nowUs();
  const wasPaused = ![...old, ready].some((one) => one?.status === 'running');
  const pausedFromUs = running && wasPaused ? registration.runningSeenAtUs : null;
  if (pausedFromUs !== null) {
    await administration.commit({ openGap: gapOf(desired, pausedFromUs, 'it was paused') });
  }
  const fresh = ready ?? (await createReplacement(step, registration, context));
  if (ready !== null) await administration.commit({ save: { ...registration, unfinished: true } });
  if (fresh.status !== desired.status) {
    if (way === 'switch') await switchTo(fresh, step, context);
    else await client.edit(fresh.id, { status: desired.status });
  }
  if (way !== 'delete-first') for (const { id } of old) await client.delete(id);
  const save = {
    ...registration,
    ...(ready === null ? { credentialsDigest, notifiedAtUs: nowUs() } : {}),
    ...(running ? nowRunning(beganAtUs) : {}),
    subscriptionId: fresh.id,
    unfinished: false,
  };
  await commitDone(
    { save, runs: running, action: 'replaced', what: replacementReason(step) },
    context,
  );
}

/** Creates the new one: in its desired state, or paused for a switch. */
function createReplacement(
  step: Step<'replace'>,
  registration: Registration,
  context: StepContext,
): Promise<CatalogueSubscription> {
  const { desired, way } = step;
  if (way === 'delete-first') return deleteFirst(step, registration, context);
  const status = way === 'switch' ? 'paused' : desired.status;
  return withIntent(registration, context, () => createOnce({ ...desired, status }, context));
}

/** Deletes the old one, then creates the new one. If that is refused, recreates the old one. */
async function deleteFirst(
  { desired, old }: Step<'replace'>,
  registration: Registration,
  context: StepContext,
): Promise<CatalogueSubscription> {
  const { client, administration, nowUs } = context;
  const { name } = desired;
  const missed = old.find(({ status }) => status === 'running');
  const beganAtUs = nowUs();
  const reason = 'replacement in a full account';
  // The gap of the old one: its events are missed until the new one is accepted.
  const openGap = missed === undefined ? null : gapOf({ name, ...missed }, beganAtUs, reason);
  const deleteAndCreate = async () => {
    for (const { id } of old) {
      await client.delete(id);
      const history = [historyEntry({ name, id }, 'deleted', 'the account is full', context)];
      await administration.commit({ history });
    }
    return createOnce(desired, context);
  };
  try {
    const fresh = await withIntent(registration, context, deleteAndCreate, {
      oldIsGone: true,
      openGap,
    });
    if (missed === undefined) return fresh;
    const closeGaps = { subscription: name, toUs: nowUs() };
    await administration.commit({ closeGaps });
    await administration.commit({ openGap: gapOf(desired, beganAtUs, reason), closeGaps });
    return fresh;
  } catch (error) {
    const [first] = old;
    const isRefused = isAppError(error) && error.code !== 'unavailable';
    if (!isRefused || first === undefined) throw error;
    await recreate(name, missed ?? first, context);
    const detail =
      'The account is full, so the old subscription was deleted first. The old subscription was then recreated.';
    throw error.with({ details: [...error.details, detail] });
  }
}

/** Creates a deleted subscription again. */
async function recreate(
  name: string,
  old: CatalogueSubscription,
  context: StepContext,
): Promise<void> {
  const { credentialsDigest, nowUs } = context;
  const runs = old.status === 'running';
  const desired: DesiredSubscription = {
    name,
    events: subscriptionEvents.filter((event) => old.events.includes(event)),
    filter: old.filter,
    status: runs ? 'running' : 'paused',
  };
  const beganAtUs = nowUs();
  const registration = await registrationFor(desired, context);
  const { id } = await createOnce(desired, context);
  const save = {
    ...registration,
    credentialsDigest,
    ...(runs ? nowRunning(beganAtUs) : {}),
    subscriptionId: id,
    notifiedAtUs: nowUs(),
    unfinished: false,
  };
  const what = 'its replacement was refused';
  await commitDone({ save, runs, action: 'recreated', what }, context);
}

/** Pauses the old one and resumes the new one, as only one may run. Records the gap first. */
async function switchTo(
  fresh: CatalogueSubscription,
  { desired, old }: Step<'replace'>,
  { client, administration, nowUs }: StepContext,
): Promise<void> {
  await administration.commit({
    openGap: gapOf(desired, nowUs(), 'paused during its replacement'),
  });
  const stopped = old.filter(({ status }) => status === 'running');
  for (const { id } of stopped) await client.edit(id, { status: 'paused' });
  try {
    await client.edit(fresh.id, { status: 'running' });
  } catch (error) {
    // The old filter is better than none. If this fails too, the first error is reported.
    const restarts = stopped.map(({ id }) => client.edit(id, { status: 'running' }));
    await Promise.allSettled(restarts);
    throw error;
  }
}

function replacementReason({ differs, old, way }: Step<'replace'>): string {
  const ids = old.map(({ id }) => id).join(', ');
  const what = differs.length === 0 ? 'duplicate' : `changed ${differs.join(' and ')}`;
  const how = { overlap: '', switch: ', with a short gap', 'delete-first': ', with a gap' }[way];
  return `${what}; deleted ${ids}${how}`;
}
