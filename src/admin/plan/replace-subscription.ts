/** Replaces a subscription whose filter or events have changed, without losing events on the way. */
import type { Registration } from '../../domain/administration.ts';
import { isAppError } from '../../domain/app-error.ts';
import { subscriptionEvents } from '../../domain/subscription.ts';
import type { CatalogueSubscription } from '../service/catalogue-subscription.ts';
import { createOnce } from './create-once.ts';
import type { PlanStep } from './plan.ts';
import {
  gapOf,
  historyEntry,
  nowRunning,
  registrationFor,
  type StepWorld,
  withCredentials,
  withIntent,
} from './step-world.ts';

type Replacement = Extract<PlanStep, { kind: 'replace' }>;

/**
 * Goes on from wherever an earlier try was cut: what is there already is not made again. The Id of the
 * old one stays remembered until it is deleted, so that it cannot be taken for a stranger's.
 */
export async function replaceSubscription(step: Replacement, world: StepWorld): Promise<void> {
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
