/** Replaces a subscription whose filter or events have changed, without losing events on the way. */
import type { Registration } from '../../domain/administration.ts';
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
      ...(running ? nowRunning(world) : {}),
      subscriptionId: fresh.id,
      unfinished: false,
    },
    ...(running ? { closeGaps: { subscription: desired.name, toUs: nowUs() } } : {}),
    history: [historyEntry({ ...desired, id: fresh.id }, 'replaced', whyOf(step), world)],
  });
}

/** Creates the new one: as it is wanted, or paused where a moment has to be chosen. */
function makeNew(
  { desired, way, old }: Replacement,
  registration: Registration,
  world: StepWorld,
): Promise<CatalogueSubscription> {
  const oldIsGone = way === 'delete-first';
  const isMissed = oldIsGone && old.some(({ status }) => status === 'running');
  const openGap = isMissed ? gapOf(desired, world.nowUs(), 'replaced in a full account') : null;
  const make = async () => {
    if (oldIsGone) for (const { id } of old) await world.client.delete(id);
    const status = way === 'switch' ? 'paused' : desired.status;
    return createOnce({ ...desired, status }, world);
  };
  return withIntent(registration, world, make, { oldIsGone, openGap });
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
