/** Replaces a subscription: its type, its events and its filter cannot be edited. */

import type { Registration } from '../domain/account.ts';
import { isAppError } from '../domain/app-error.ts';
import { type DesiredSubscription, subscriptionEvents } from '../domain/subscription.ts';
import { createOnce } from './create-once.ts';
import type { PlanStep } from './plan.ts';
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
  withIntent,
} from './plan-context.ts';
import type { CatalogueSubscription } from './subscription-client.ts';

type ReplaceStep = Extract<PlanStep, { kind: 'replace' }>;

/**
 * Resumes an interrupted replacement: what exists is not created again. The Id of the old subscription stays
 * recorded until it is deleted, so that it cannot count as unmanaged.
 */
export async function replaceSubscription(step: ReplaceStep, context: StepContext): Promise<void> {
  const { desired, old, ready, way } = step;
  const { client, administration, nowUs } = context;
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
  // The catalogue may refuse to read the queue of a paused subscription.
  if (desired.type === 'pull' && running) await context.queues.check(fresh.id).catch(incomplete);
  if (way !== 'delete-first') {
    for (const one of old) {
      const left = way === 'switch' ? { ...one, status: 'paused' } : one;
      await drainBeforeEnd(desired.name, left, context);
      await client.delete(one.id);
    }
  }
  const save = {
    ...registration,
    ...(ready === null || desired.type === 'pull'
      ? { credentialsDigest: digestFor(desired, context) }
      : {}),
    ...(ready === null ? { notifiedAtUs: nowUs() } : {}),
    ...(running ? nowRunning(beganAtUs) : seenPaused(registration, context)),
    subscriptionId: fresh.id,
    unfinished: false,
  };
  await commitDone(
    { save, runs: running, action: 'replaced', what: replacementReason(step) },
    context,
  );
}

function incomplete(error: unknown): never {
  if (!isAppError(error) || error.code === 'cancelled') throw error;
  const detail = 'The replacement is not complete. To continue: `earshot register`.';
  throw error.with({ details: [...error.details, detail] });
}

/** Creates the new one: in its desired state, or paused for a switch. */
function createReplacement(
  step: ReplaceStep,
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
  { desired, old }: ReplaceStep,
  registration: Registration,
  context: StepContext,
): Promise<CatalogueSubscription> {
  const { client, administration, nowUs } = context;
  const { name } = desired;
  const missed = old.find(({ status }) => status === 'running');
  for (const one of old) await drainBeforeEnd(name, one, context);
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
  const { nowUs } = context;
  const runs = old.status === 'running';
  const desired: DesiredSubscription = {
    name,
    type: old.type === 'pull' ? 'pull' : 'push',
    events: subscriptionEvents.filter((event) => old.events.includes(event)),
    filter: old.filter,
    status: runs ? 'running' : 'paused',
  };
  const beganAtUs = nowUs();
  const registration = await registrationFor(desired, context);
  const { id } = await createOnce(desired, context);
  const save = {
    ...registration,
    credentialsDigest: digestFor(desired, context),
    ...(runs ? nowRunning(beganAtUs) : seenPaused(registration, context)),
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
  { desired, old }: ReplaceStep,
  context: StepContext,
): Promise<void> {
  const { client, administration, nowUs } = context;
  const sinceUs = nowUs();
  // A paused queue may not be readable.
  for (const one of old) await drainBeforeEnd(desired.name, one, context);
  await administration.commit({
    openGap: gapOf(desired, sinceUs, 'paused during its replacement'),
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

function replacementReason({ differs, old, way }: ReplaceStep): string {
  const ids = old.map(({ id }) => id).join(', ');
  const what = differs.length === 0 ? 'duplicate' : `changed ${differs.join(' and ')}`;
  const how = { overlap: '', switch: ', with a short gap', 'delete-first': ', with a gap' }[way];
  return `${what}; deleted ${ids}${how}`;
}
