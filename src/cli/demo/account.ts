/** The demo's way through the account: token, plan, look at the endpoint, register, maintain. */

import { applyPlan, preparePlan } from '../../admin/apply-plan.ts';
import { maintain } from '../../admin/maintain.ts';
import type { AccountContext } from '../../admin/plan-context.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Box, FilterTree } from '../../domain/filter-tree.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { parseFilter } from '../../filter/parse.ts';
import { createAccountContext } from '../account.ts';
import type { Io } from '../io.ts';
import { painter } from '../output.ts';
import { planText } from '../plan-output.ts';
import type { DemoContext } from './context.ts';

/** Paths below /notifications; the second one is that of the counting form alone. */
export const demoName = 'demo';

export const filteredName = 'demo-filtered';

/** The counting form tells everything from what matches; the lively one shows only what matches. */
const everything = { name: demoName, events: ['created'], filter: '', status: 'running' } as const;

export const demoCollection = 'SENTINEL-2';

/**
 * From 20 to 60 degrees north, all around: the made-up satellites are where real ones could be, so any
 * one country may see none of them for hours.
 */
const demoBox: Box = { west: -180, south: 20, east: 180, north: 60 };

const { west, south, east, north } = demoBox;

const corners = [
  [west, south],
  [east, south],
  [east, north],
  [west, north],
  [west, south],
] as const;

const ring = corners.map((corner) => corner.join(' ')).join(',');

/** As it would be given to `register`. */
export const demoFilter = `Collection/Name eq '${demoCollection}' and OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;

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
  demo: DemoContext,
  form: keyof typeof wanted,
): Promise<void> {
  const context = contextOf(io, demo);
  const prepared = await preparePlan({ desired: wanted[form] }, context);
  if (form === 'lively') {
    const paint = painter(io, io.stdout);
    io.stdout.write(
      `One login at the sandbox's identity provider. What \`register\` would do:\n\n`,
    );
    io.stdout.write(`${planText(prepared.plan, context.limits, paint)}\n`);
  }
  await applyPlan(prepared, context, { actor: 'register' });
  // Not before all of them run, or a subscription would miss what the other was sent.
  demo.sandbox.resume();
  if (form === 'lively') {
    io.stdout.write('The endpoint answered 200 over a trusted certificate. Registered.\n\n');
  }
}

/** One round of maintenance; throws when it finds anything to do or to tell. */
export async function maintainDemo(io: Io, demo: DemoContext): Promise<number> {
  const results = await maintain({ inFile: null }, contextOf(io, demo));
  const odd = results.filter(
    ({ did, notes, failure }) => did !== null || notes.length > 0 || failure !== null,
  );
  if (odd.length === 0) return results.length;
  throw new AppError('invalid', 'Maintenance found something to do in a fresh account.', {
    details: odd.map(({ name, status, failure }) => `${name}: ${status} ${failure ?? ''}`),
  });
}

function contextOf(io: Io, { config, receiver }: DemoContext): AccountContext {
  const [pair = { username: '', password: '' }] = config.endpoint.pairs;
  return createAccountContext(config, pair, receiver.store, io);
}

/** The same as a tree. */
export function demoTree(): FilterTree {
  return parseFilter(demoFilter).tree;
}

/** The place alone, as `query -- products --bbox` asks for it. */
export const demoPlace: FilterTree = {
  node: 'intersects',
  argument: 'area',
  srid: 4326,
  geometry: { type: 'Polygon', coordinates: [corners] },
};

/** The flags of `query` that ask for the same products as the filter. */
export const demoQueryFlags = `--collection ${demoCollection} --bbox=${[west, south, east, north].join(',')}`;
