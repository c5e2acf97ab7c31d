/** Differences of a plan, as the command line shows them. */
import type { Difference, Plan } from '../../../src/admin/differences.ts';
import type { CatalogueSubscription } from '../../../src/admin/subscription-client.ts';
import type { DesiredSubscription } from '../../../src/core/terms/subscription.ts';
import { desiredState, managed, otherFilter, publicUrl } from '../../admin/samples.ts';

export const endpoint = `${publicUrl}/notifications/alps`;
export const desired = desiredState({ events: ['created', 'modified'] });
export const current: CatalogueSubscription = managed({ id: 'c06f2e68', filter: otherFilter });

/** An empty plan for an account without subscriptions. */
export const empty: Plan = {
  differences: [],
  unchanged: [],
  obsolete: [],
  unmanaged: [],
  counts: { running: 0, total: 0 },
  isTooLarge: false,
};

/** Returns the difference of a subscription that is to be created. */
export const creating = (one: DesiredSubscription = desired): Difference => ({
  ...{ name: one.name, desired: one, current: null, edit: {}, old: [], differs: [] },
  ...{ way: 'overlap', adopted: false },
});

/** Returns the difference of a subscription that is to be replaced. */
export const replacing = (changes: Partial<Difference> = {}): Difference => ({
  ...{ ...creating(), old: [current], differs: ['events', 'filter'] },
  ...changes,
});
