/** Rounds of maintenance as tests ask for them. */
import { onTestFinished } from 'vitest';
import { type MaintenanceOptions, maintain } from '../../../src/admin/maintain.ts';
import type { Cut } from '../plan/cut-calls.ts';
import { dayUs, held, registrationOf, startUs } from '../plan/plan-samples.ts';
import { openPlanWorld, type PlanWorld, type Situation } from '../plan/plan-world.ts';

export const long = startUs - 61 * dayUs;
/** As if the service had paused it: nothing was heard for 61 days, and it ran the last time. */
export const silentOne = (name: string) => ({
  there: held({ name, status: 'paused', submittedAtUs: long, lastNotificationAtUs: long }),
  known: registrationOf({ name, activityAtUs: long, notifiedAtUs: long }),
});
export const alps = silentOne('alps');
export const baltic = silentOne('baltic');

/** A world that is closed when the test is over. */
export async function openWorld(situation: Situation): Promise<PlanWorld> {
  const world = await openPlanWorld(situation);
  onTestFinished(world.close);
  return world;
}

/** One round; `inFile` is what `earshot.config.ts` names. */
export const round = (
  world: PlanWorld,
  inFile: MaintenanceOptions['inFile'] = null,
  cut: Cut | null = null,
) => maintain({ inFile }, world.world(cut));

/** The history, newest first, as "register created alps". */
export const told = async (world: PlanWorld) =>
  (await world.administration.history({ limit: 100 })).map(
    ({ subscription, action, actor }) => `${actor} ${action} ${subscription}`,
  );
