/** Applies the steps of a plan. Each is recorded in the store, so that an interrupted plan can be resumed. */

import type { Registration } from '../domain/account.ts';
import { createOnce } from './create-once.ts';
import type { PlannedEdit, PlanStep } from './plan.ts';
import {
  commitDone,
  digestFor,
  drainBeforeEnd,
  gapOf,
  historyEntry,
  nowRunning,
  registrationFor,
  type StepContext,
  seenPaused,
  seenRunning,
  withIntent,
} from './plan-context.ts';
import { replaceSubscription } from './replace-step.ts';

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

async function create({ desired }: Step<'create'>, context: StepContext): Promise<void> {
  const { nowUs } = context;
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
    credentialsDigest: digestFor(desired, context),
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
    ...(runs ? seenRunning(registration, context.listedAtUs) : seenPaused(registration, context)),
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
    ...(runs ? seenRunning(registration, listedAtUs) : seenPaused(registration, context)),
    ...(status === 'running' ? nowRunning(beganAtUs) : {}),
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
  await drainBeforeEnd(name, current, context);
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
