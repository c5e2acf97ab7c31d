/** An account, a store in memory, a clock and calls that can be cut; rounds of maintenance and reviews over them. */
import Sqlite from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { applyStep } from '../../src/admin/apply-plan.ts';
import { type MaintenanceOptions, maintain } from '../../src/admin/maintain.ts';
import { type AccountLimits, fitPlan, makePlan, type Plan } from '../../src/admin/plan.ts';
import type { AccountContext } from '../../src/admin/plan-context.ts';
import { type ReviewInput, review } from '../../src/admin/review.ts';
import type { Administration, NewGap, Registration } from '../../src/domain/account.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';
import { accountReads, accountWrites } from '../../src/store/account.ts';
import { migrate } from '../../src/store/engine/migrate.ts';
import { localOperations } from '../store/local-store.ts';
import { createFakeCatalogue, type FakeCatalogue, type Held } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  digest,
  held,
  publicUrl,
  registrationOf,
  secret,
  startUs,
} from './samples.ts';

/** Opens an empty one; `close` gives its memory back. */
export function openMemoryAdministration(): Administration & { close: () => void } {
  const database = new Sqlite(':memory:');
  migrate(database);
  return {
    ...localOperations({ ...accountReads, ...accountWrites }, () => database),
    close: () => void database.close(),
  };
}

/** `killed`: neither this call nor any after it is answered. `unavailable`: only this one fails. */
export interface Cut {
  /** The number of the call, from 0. */
  call: number;
  /** Before it had its effect, or after. */
  when: 'before' | 'after';
  how: 'killed' | 'unavailable';
}

/**
 * The same targets, whose methods may be cut; all of them must be asynchronous. `calls` are those so
 * far, as "client.create". `between` is called before and after the effect of every call.
 */
export function cutCalls<Targets extends Record<string, object>>(
  targets: Targets,
  cut: Cut | null,
  between: () => void,
): Targets & { calls: string[] } {
  const calls: string[] = [];
  let isDead = false;
  const fail = (): never => {
    isDead = cut?.how === 'killed';
    if (isDead) throw new Error('killed');
    throw new AppError('unavailable', 'No answer came.');
  };
  const wrapped = <Fields extends object>(target: Fields, kind: string): Fields =>
    new Proxy(target, {
      get: (_, key, receiver) => {
        const method: unknown = Reflect.get(target, key, receiver);
        if (typeof method !== 'function') return method;
        return async (...given: unknown[]) => {
          if (isDead) throw new Error('killed');
          const call = calls.push(`${kind}.${String(key)}`) - 1;
          between();
          if (call === cut?.call && cut.when === 'before') fail();
          try {
            return await method.apply(target, given);
          } finally {
            between();
            if (call === cut?.call && cut.when === 'after') fail();
          }
        };
      },
    });
  const cuttable = Object.entries(targets).map(([kind, target]) => [kind, wrapped(target, kind)]);
  return { ...targets, ...Object.fromEntries(cuttable), calls };
}

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

export interface Asked {
  /** Fields of the one that is listed; null when it is gone. */
  listed?: Partial<Held> | null;
  /** More that deliver to the same path. */
  more?: Held[];
  registration?: Partial<Registration>;
  lastDeliveryAtUs?: number | null;
  inFile?: ReviewInput['inFile'];
  nowUs?: number;
}

export function reviewed(asked: Asked) {
  const { listed = {}, more = [], registration, lastDeliveryAtUs = null } = asked;
  const { inFile, nowUs = startUs } = asked;
  return review({
    registration: registrationOf(registration),
    inFile,
    candidates: [...(listed === null ? [] : [held(listed)]), ...more],
    lastDeliveryAtUs,
    nowUs,
    publicUrl,
  });
}

/** What is done and noted: "resume", "- paused-by-person deletion-ahead". */
export function verdict(asked: Asked): string {
  const { action, notes } = reviewed(asked);
  return [action ?? '-', ...notes.map(({ code }) => code)].join(' ');
}
