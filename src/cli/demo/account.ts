/** Account part of the demo: token, plan, endpoint probe, registration, maintenance. */

import type { AccountContext } from '../../admin/account-context.ts';
import { applyDesired, readPlan } from '../../admin/apply.ts';
import { maintain } from '../../admin/maintain.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Box, FilterTree } from '../../domain/filter-tree.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { parseFilter } from '../../filter/parse.ts';
import { createAccountContext } from '../account.ts';
import type { Io } from '../io.ts';
import { painter } from '../output.ts';
import { planText } from '../plan-output.ts';
import type { DemoContext } from './context.ts';

/** Paths below /notifications. Only the counting form uses the second one. */
export const demoName = 'demo';

export const filteredName = 'demo-filtered';

/** The counting form compares all products with the matching ones; the interactive form shows matching ones only. */
const everything = {
  name: demoName,
  type: 'push',
  events: ['created'],
  filter: '',
  status: 'running',
} as const;

export const demoCollection = 'SENTINEL-2';

/**
 * From 20 to 60 degrees north, all around the globe: the simulated satellites follow realistic orbits, so
 * a single country may get no product for hours.
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

/** Filter as for `register`. */
export const demoFilter = `Collection/Name eq '${demoCollection}' and OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((${ring}))')`;

const filtered = { ...everything, name: filteredName, filter: demoFilter } as const;

const desired = {
  everything: [everything],
  counting: [everything, filtered],
  // The catalogue documents deletions in a subscription of their own (facts, catalogue 1.3).
  lively: [
    { ...filtered, name: demoName, events: ['created', 'modified'] },
    { ...filtered, name: 'demo-deletions', events: ['deleted'] },
  ],
} as const satisfies Record<string, readonly DesiredSubscription[]>;

type RegisteredDemo = Pick<DemoContext, 'config' | 'sandbox'> & {
  isPull?: boolean;
  receiver: Pick<DemoContext['receiver'], 'store'>;
};

/** Registers as `earshot register` does; then starts publishing. */
export async function registerDemo(
  io: Io,
  demo: RegisteredDemo,
  form: keyof typeof desired,
): Promise<void> {
  const context = contextOf(io, demo);
  const type = demo.isPull ? 'pull' : 'push';
  const planned = desired[form].map((one): DesiredSubscription => ({ ...one, type }));
  if (form === 'lively') {
    const paint = painter(io, io.stdout);
    io.stdout.write(
      `Logged in at the sandbox's identity provider. Plan of \`earshot register\`:\n\n`,
    );
    const plan = await readPlan({ desired: planned }, context);
    io.stdout.write(`${planText(plan, context.limits, paint)}\n`);
  }
  await applyDesired({ desired: planned }, context, { actor: 'register' });
  // Starts when all subscriptions run, so that all get the same products.
  demo.sandbox.resume();
  if (form === 'lively') {
    const check = demo.isPull
      ? 'the catalogue keeps a queue, which the receiver reads'
      : 'the endpoint returned 200 with a trusted certificate';
    io.stdout.write(`Registered: ${check}.\n\n`);
  }
}

/** Runs one round of maintenance. Throws if it changes or reports anything. */
export async function maintainDemo(io: Io, demo: DemoContext): Promise<number> {
  const results = await maintain({ inFile: null }, contextOf(io, demo));
  const odd = results.filter(
    ({ did, notes, failure }) => did !== null || notes.length > 0 || failure !== null,
  );
  if (odd.length === 0) return results.length;
  throw new AppError('invalid', 'Maintenance changed or reported something in a new account.', {
    details: odd.map(({ name, status, failure }) => `${name}: ${status} ${failure ?? ''}`),
  });
}

function contextOf(
  io: Io,
  { config, receiver }: Pick<RegisteredDemo, 'config' | 'receiver'>,
): AccountContext {
  const [pair = { username: '', password: '' }] = config.endpoint.pairs;
  return createAccountContext(config, pair, receiver.store, io);
}

/** Returns the filter as a tree. */
export function demoTree(): FilterTree {
  return parseFilter(demoFilter).tree;
}

/** Area of the filter, as of `query products --bbox`. */
export const demoPlace: FilterTree = {
  node: 'intersects',
  argument: 'area',
  srid: 4326,
  geometry: { type: 'Polygon', coordinates: [corners] },
};

/** Flags of `query` that select the same products as the filter. */
export const demoQueryFlags = `--collection ${demoCollection} --bbox=${[west, south, east, north].join(',')}`;
