/** An account, a store in memory, a clock and calls that can be cut; rounds of maintenance and reviews over them. */
import Sqlite from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { applyStep } from '../../src/admin/apply-step.ts';
import { type MaintenanceOptions, maintain } from '../../src/admin/maintain.ts';
import { type AccountLimits, fitPlan, makePlan, type Plan } from '../../src/admin/plan.ts';
import type { AccountContext } from '../../src/admin/plan-context.ts';
import { type ReviewInput, review } from '../../src/admin/review.ts';
import type { Administration, NewGap, Registration } from '../../src/domain/account.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { DesiredSubscription } from '../../src/domain/subscription.ts';
import { accountReads, accountWrites } from '../../src/store/account.ts';
import { migrate } from '../../src/store/engine/database.ts';
import { localOperations } from '../store/local-store.ts';
import { createFakeCatalogue, type FakeSubscription } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  digest,
  managed,
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
  subscriptions: FakeSubscription[];
}

export interface RegisterOptions {
  desired: readonly DesiredSubscription[];
  movedFrom?: string | undefined;
  prune?: boolean;
}

/** What an account looks like before the test. */
export interface Situation {
  subscriptions?: readonly FakeSubscription[];
  registrations?: readonly Registration[];
  /** Gaps that last. */
  gaps?: readonly NewGap[];
  limits?: AccountLimits;
  /** The list tells when it was last notified; it does by default. */
  showsLastNotification?: boolean;
}

export interface Registered {
  plan: Plan;
  limitErrors: string[];
}

/** The specification's limits. */
export const usualLimits: AccountLimits = { runningMax: 2, totalMax: 10 };
/** Passes before and after the effect of every call. */
const callUs = 1_000;

export type AccountSetUp = Awaited<ReturnType<typeof openAccount>>;

/** `administration` is the store to remember with; one in memory by default. */
export async function openAccount(
  situation: Situation = {},
  administration: Administration & { close?: () => void } = openMemoryAdministration(),
) {
  const { subscriptions = [], registrations = [], gaps = [], limits = usualLimits } = situation;
  const { showsLastNotification = true } = situation;
  let clockUs = startUs;
  const nowUs = () => clockUs;
  const catalogue = createFakeCatalogue({ subscriptions, limits, nowUs, showsLastNotification });
  for (const save of registrations) await administration.commit({ save });
  for (const openGap of gaps) await administration.commit({ openGap });
  const moments: Moment[] = [];
  const record = () =>
    void moments.push({ atUs: clockUs, subscriptions: catalogue.subscriptions() });
  const between = () => {
    record();
    clockUs += callUs;
    record();
  };
  let calls: string[] = [];
  const context = (cut: Cut | null = null): AccountContext => {
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
      listDelayMs: 0,
    };
  };
  return {
    limits,
    catalogue,
    administration,
    moments,
    nowUs,
    /** Lets time pass, and records the account. */
    pass: (us: number) => {
      clockUs += us;
      record();
    },
    /** What commands work with; its calls may be cut. */
    context,
    /** The plan that `register` would carry out. */
    plan: (options: RegisterOptions): Promise<Registered> => planIn(context(), options),
    /** Plans and applies, without a probe; nothing is applied that goes beyond the limits. */
    register: (options: RegisterOptions, cut?: Cut | null) => registerIn(context(cut), options),
    /** The calls through the last context, as "client.create". */
    calls: () => calls,
    close: () => administration.close?.(),
  };
}

async function planIn(context: AccountContext, { desired, movedFrom, prune }: RegisterOptions) {
  const [listed, registrations] = await Promise.all([
    context.client.list(),
    context.administration.registrations(),
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
  return { listed, listedAtUs: context.nowUs(), ...fitPlan(plan, context.limits) };
}

async function registerIn(context: AccountContext, options: RegisterOptions): Promise<Registered> {
  const { plan, limitErrors, ...seen } = await planIn(context, options);
  if (limitErrors.length > 0) return { plan, limitErrors };
  for (const step of plan.steps) {
    await applyStep(step, { ...context, ...seen, actor: 'register', credentialsDigest: digest });
  }
  return { plan, limitErrors };
}

export const silentSinceUs = startUs - 61 * dayUs;
/** As if the service had paused it: nothing was heard for 61 days, and it ran the last time. */
export const pausedByService = (name: string) => ({
  subscription: managed({
    name,
    status: 'paused',
    submittedAtUs: silentSinceUs,
    lastNotificationAtUs: silentSinceUs,
  }),
  registration: registrationOf({ name, activityAtUs: silentSinceUs, notifiedAtUs: silentSinceUs }),
});
export const alps = pausedByService('alps');
export const baltic = pausedByService('baltic');

/** An account that is closed when the test is over. */
export async function openSetUp(situation: Situation): Promise<AccountSetUp> {
  const setUp = await openAccount(situation);
  onTestFinished(setUp.close);
  return setUp;
}

/** One round; `inFile` is what `earshot.config.ts` names. */
export const round = (
  setUp: AccountSetUp,
  inFile: MaintenanceOptions['inFile'] = null,
  cut: Cut | null = null,
) => maintain({ inFile }, setUp.context(cut));

/** The history, newest first, as "register created alps". */
export const historyLines = async (setUp: AccountSetUp) =>
  (await setUp.administration.history({ limit: 100 })).map(
    ({ subscription, action, actor }) => `${actor} ${action} ${subscription}`,
  );

export interface ReviewCase {
  /** Fields of the one that is listed; null when it is gone. */
  listed?: Partial<FakeSubscription> | null;
  /** More that deliver to the same path. */
  more?: FakeSubscription[];
  registration?: Partial<Registration>;
  lastDeliveryAtUs?: number | null;
  inFile?: ReviewInput['inFile'];
  nowUs?: number;
}

export function reviewOf(input: ReviewCase) {
  const { listed = {}, more = [], registration, lastDeliveryAtUs = null } = input;
  const { inFile, nowUs = startUs } = input;
  return review({
    registration: registrationOf(registration),
    inFile,
    candidates: [...(listed === null ? [] : [managed(listed)]), ...more],
    lastDeliveryAtUs,
    nowUs,
    publicUrl,
  });
}

/** What is done and noted: "resume", "- paused-by-person deletion-ahead". */
export function outcomeOf(input: ReviewCase): string {
  const { action, notes } = reviewOf(input);
  return [action ?? '-', ...notes.map(({ code }) => code)].join(' ');
}
