/** An account, a store and a clock for tests of plans; every moment between two calls is kept. */
import { applyStep } from '../../../src/admin/apply-plan.ts';
import { type AccountLimits, fitPlan, makePlan, type Plan } from '../../../src/admin/plan.ts';
import type { AccountContext } from '../../../src/admin/plan-context.ts';
import type { Administration, NewGap, Registration } from '../../../src/domain/account.ts';
import type { DesiredSubscription } from '../../../src/domain/subscription.ts';
import { type Cut, cutCalls } from './cut-calls.ts';
import { createFakeCatalogue, type FakeCatalogue, type Held } from './fake-catalogue.ts';
import { openMemoryAdministration } from './memory-administration.ts';
import { credentials, digest, publicUrl, secret, startUs } from './plan-samples.ts';

/** The account at an instant at which an event could happen. */
export interface Moment {
  atUs: number;
  held: Held[];
}

export interface RegisterOptions {
  desired: readonly DesiredSubscription[];
  movedFrom?: string | undefined;
  prune?: boolean;
}

/** What an account looks like before the test. */
export interface Situation {
  held?: readonly Held[];
  registrations?: readonly Registration[];
  /** Gaps that last. */
  gaps?: readonly NewGap[];
  limits?: AccountLimits;
  /** The list tells when it was last notified; it does unless told. */
  showsLastNotification?: boolean;
}

export interface Registered {
  plan: Plan;
  excess: string[];
}

export interface PlanWorld {
  limits: AccountLimits;
  catalogue: FakeCatalogue;
  administration: Administration;
  moments: Moment[];
  nowUs: () => number;
  /** Lets time pass, and looks. */
  pass: (us: number) => void;
  /** What commands work with; its calls may be cut. */
  world: (cut?: Cut | null) => AccountContext;
  /** What `register` would do. */
  plan: (options: RegisterOptions) => Promise<Registered>;
  /** Plans and applies, without a probe; nothing is applied that goes beyond the limits. */
  register: (options: RegisterOptions, cut?: Cut | null) => Promise<Registered>;
  /** The calls that the last world made, as "client.create". */
  calls: () => string[];
  close: () => void;
}

/** The specification's limits. */
export const usualLimits: AccountLimits = { runningMax: 2, totalMax: 10 };
/** Passes before and after the effect of every call. */
const callUs = 1_000;

/** `administration` is the store to remember with; one in memory unless told. */
export async function openPlanWorld(
  situation: Situation = {},
  administration: Administration & { close?: () => void } = openMemoryAdministration(),
): Promise<PlanWorld> {
  const { held = [], registrations = [], gaps = [], limits = usualLimits } = situation;
  const { showsLastNotification = true } = situation;
  let clockUs = startUs;
  const nowUs = () => clockUs;
  const catalogue = createFakeCatalogue({ held, limits, nowUs, showsLastNotification });
  for (const save of registrations) await administration.commit({ save });
  for (const openGap of gaps) await administration.commit({ openGap });
  const moments: Moment[] = [];
  const look = () => void moments.push({ atUs: clockUs, held: catalogue.held() });
  const between = () => {
    look();
    clockUs += callUs;
    look();
  };
  let calls: string[] = [];
  const world = (cut: Cut | null = null): AccountContext => {
    const target = { client: catalogue.client, administration };
    const { calls: made, ...answering } = cutCalls(target, cut, between);
    calls = made;
    return {
      ...answering,
      publicUrl,
      credentials,
      limits,
      nowUs,
      random: () => 0,
      newSecret: () => secret,
      probe: async () => ({ fault: null, status: 200, tls: null }),
      lookAfterMs: 0,
    };
  };
  return {
    limits,
    catalogue,
    administration,
    moments,
    nowUs,
    pass: (us) => {
      clockUs += us;
      look();
    },
    world,
    plan: (options) => planIn(world(), options).then(({ plan, excess }) => ({ plan, excess })),
    register: (options, cut) => registerIn(world(cut), options),
    calls: () => calls,
    close: () => administration.close?.(),
  };
}

async function planIn(world: AccountContext, { desired, movedFrom, prune }: RegisterOptions) {
  const [listed, registrations] = await Promise.all([
    world.client.list(),
    world.administration.registrations(),
  ]);
  const plan = makePlan({
    desired,
    listed,
    registrations,
    publicUrl,
    movedFrom,
    prune: prune === true,
    hasCredentials: ({ credentialsDigest }) => credentialsDigest === digest,
  });
  return { listed, listedAtUs: world.nowUs(), ...fitPlan(plan, world.limits) };
}

async function registerIn(world: AccountContext, options: RegisterOptions): Promise<Registered> {
  const { plan, excess, ...seen } = await planIn(world, options);
  if (excess.length > 0) return { plan, excess };
  for (const step of plan.steps) {
    await applyStep(step, { ...world, ...seen, actor: 'register', credentialsDigest: digest });
  }
  return { plan, excess };
}
