/** Does the steps of a plan, each remembered in the store, so that a cut can be gone on from. */
import type { Registration } from '../../domain/administration.ts';
import { createOnce } from './create-once.ts';
import type { PlannedEdit, PlanStep } from './plan.ts';
import { replaceSubscription } from './replace-subscription.ts';
import {
  gapOf,
  historyEntry,
  nowRunning,
  registrationFor,
  type StepWorld,
  seenRunning,
  withCredentials,
  withIntent,
} from './step-world.ts';

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
