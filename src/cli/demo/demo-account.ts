/** The demo's way through the account: token, plan, look at the endpoint, register, maintain. */

import { maintain } from '../../admin/maintenance/maintain.ts';
import { type AccountWorld, carryOut, preparePlan } from '../../admin/plan/carry-out-plan.ts';
import { AppError } from '../../domain/app-error.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { accountWorld } from '../account.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { planText } from '../plan-output.ts';
import { demoFilter } from './demo-filter.ts';
import type { DemoWorld } from './demo-world.ts';

/** Paths below /notifications; the second one is that of the counting form alone. */
export const demoName = 'demo';
export const filteredName = 'demo-filtered';

/** The counting form tells everything from what matches; the lively one shows only what matches. */
const everything = { name: demoName, events: ['created'], filter: '', status: 'running' } as const;
const filtered = { ...everything, name: filteredName, filter: demoFilter } as const;
const wanted = {
  counting: [everything, filtered],
  // The catalogue documents deletions in a subscription of their own (facts, catalogue 1.3).
  lively: [
    { ...filtered, name: demoName, events: ['created', 'modified'] },
    { ...filtered, name: 'demo-deletions', events: ['deleted'] },
  ],
} as const satisfies Record<string, readonly DesiredSubscription[]>;

/** Registers as `earshot register` does; then the sandbox publishes. */
export async function registerDemo(
  io: Io,
  demo: DemoWorld,
  form: keyof typeof wanted,
): Promise<void> {
  const world = worldOf(io, demo);
  const prepared = await preparePlan({ desired: wanted[form] }, world);
  if (form === 'lively') {
    const paint = painter(io, io.stdout);
    io.stdout.write(
      `One login at the sandbox's identity provider. What \`register\` would do:\n\n`,
    );
    io.stdout.write(`${planText(prepared.plan, world.limits, paint)}\n`);
  }
  await carryOut(prepared, world, { actor: 'register' });
  // Not before all of them run, or a subscription would miss what the other was sent.
  demo.sandbox.resume();
  if (form === 'lively') {
    io.stdout.write('The endpoint answered 200 over a trusted certificate. Registered.\n\n');
  }
}

/** One round of maintenance; throws when it finds anything to do or to tell. */
export async function maintainDemo(io: Io, demo: DemoWorld): Promise<number> {
  const results = await maintain({ inFile: null }, worldOf(io, demo));
  const odd = results.filter(
    ({ did, notes, failure }) => did !== null || notes.length > 0 || failure !== null,
  );
  if (odd.length === 0) return results.length;
  throw new AppError('invalid', 'Maintenance found something to do in a fresh account.', {
    details: odd.map(({ name, status, failure }) => `${name}: ${status} ${failure ?? ''}`),
  });
}

function worldOf(io: Io, { config, receiver }: DemoWorld): AccountWorld {
  const [pair = { username: '', password: '' }] = config.endpoint.pairs;
  return accountWorld(config, pair, receiver.store, io);
}
