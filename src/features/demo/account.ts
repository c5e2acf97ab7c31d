/** Subscriptions of the demo, and their registration. */
import { applyDesired, readPlan } from '../../admin/apply.ts';
import { createAccountContext } from '../../admin/open-account.ts';
import { loadAccountConfig } from '../../admin/settings.ts';
import type { Io } from '../../core/cli/io.ts';
import { painter } from '../../core/cli/output.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import type { Store } from '../../store/store.ts';
import { planText } from '../subscriptions/plan-output.ts';

/** Name of the first subscription, in the path of the endpoint. */
export const demoName = 'demo';

/** Flags of `query` that select the same products as the filter. */
export const demoQueryFlags = '--collection SENTINEL-2 --bbox=-180,20,180,60';

/**
 * From 20 to 60 degrees north, all around the globe: the simulated satellites follow realistic orbits, so
 * a single country may get no product for hours.
 */
export const demoFilter =
  "Collection/Name eq 'SENTINEL-2' and OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((-180 20,180 20,180 60,-180 60,-180 20))')";

/** The counting form has every product; the interactive form has those of the filter, and their changes. */
export function demoSubscriptions({
  once,
  pull,
}: {
  once?: boolean | undefined;
  pull?: boolean | undefined;
}): DesiredSubscription[] {
  const common = { name: demoName, type: pull ? 'pull' : 'push', status: 'running' } as const;
  if (once) return [{ ...common, events: ['created'], filter: '' }];
  const filtered = { ...common, filter: demoFilter };
  return [
    { ...filtered, events: ['created', 'modified'] },
    // The catalogue documents deletions in a subscription of their own (facts, catalogue 1.3).
    { ...filtered, name: 'demo-deletions', events: ['deleted'] },
  ];
}

/** Registers as `earshot register` does; prints the plan if it is `shown`. `io` has the settings. */
export async function registerDemo(
  io: Io,
  store: Store,
  desired: readonly DesiredSubscription[],
  { shown }: { shown: boolean },
): Promise<void> {
  const publicUrl = desired.some(({ type }) => type === 'push');
  const config = loadAccountConfig(io, { publicUrl });
  const [pair = { username: '', password: '' }] = config.endpoint.pairs;
  const account = createAccountContext(config, pair, store, io);
  if (shown) {
    const plan = await readPlan({ desired }, account);
    const text = planText(plan, account.limits, painter(io, io.stdout));
    io.stdout.write(`Plan of \`earshot register\`:\n\n${text}\n`);
  }
  await applyDesired({ desired }, account, { actor: 'register' });
}
