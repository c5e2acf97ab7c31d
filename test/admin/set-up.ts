/** An account, a store in memory, a clock, and calls that can be cut; maintenance rounds and reviews. */
import Sqlite from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import type { Administration, NewGap, Registration } from '../../src/admin/account.ts';
import { applyDesired, readPlan } from '../../src/admin/apply.ts';
import type { AccountContext } from '../../src/admin/changes.ts';
import type { AccountLimits, ApplyOptions, Plan } from '../../src/admin/differences.ts';
import { maintain } from '../../src/admin/maintain.ts';
import { reads, schema, writes } from '../../src/admin/sql.ts';
import type { Operation } from '../../src/core/host/rpc.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import type { DesiredSubscription } from '../../src/core/terms/subscription.ts';
import { migrate } from '../../src/store/engine/database.ts';
import { createFakeCatalogue, type FakeSubscription } from './fake-catalogue.ts';
import {
  credentials,
  dayUs,
  managed,
  publicUrl,
  registrationOf,
  secret,
  startUs,
} from './samples.ts';

/** Opens an empty store in memory; `close` frees it. */
function openMemoryAdministration(): Administration & { close: () => void } {
  const database = new Sqlite(':memory:');
  migrate(database);
  database.exec(schema);
  const calls = Object.entries({ ...reads, ...writes }).map(([name, operation]) => [
    name,
    async (...args: never[]) =>
      database.transaction(() => (operation as Operation<Sqlite.Database>)(database, ...args))(),
  ]);
  return { ...Object.fromEntries(calls), close: () => void database.close() };
}

/** `killed`: this call and all later ones fail. `unavailable`: only this call fails. */
export interface Cut {
  /** The number of the call, from 0. */
  call: number;
  /** Before or after the effect of the call. */
  when: 'before' | 'after';
  how: 'killed' | 'unavailable';
}

/**
 * Makes a call of the targets' methods fail; all methods must be asynchronous. `calls` lists the
 * calls, such as "client.create". `between` runs before and after the effect of every call.
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

/** The account at a time at which an event may occur. */
export interface Moment {
  atUs: number;
  subscriptions: FakeSubscription[];
}

/** The initial state of an account. */
export interface Situation {
  subscriptions?: readonly FakeSubscription[];
  registrations?: readonly Registration[];
  /** Open gaps. */
  gaps?: readonly NewGap[];
  limits?: AccountLimits;
  /** True when the list shows the last notification. Default: true. */
  showsLastNotification?: boolean;
}

/** Limits in the specification. */
const usualLimits: AccountLimits = { runningMax: 2, totalMax: 10 };
/** Time between the start of a call, its effect, and its end. */
const callUs = 1_000;

export type AccountSetUp = Awaited<ReturnType<typeof openAccount>>;

export async function openAccount(situation: Situation = {}) {
  const administration = openMemoryAdministration();
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
  const context = (cut: Cut | null = null): AccountContext => {
    const target = { client: catalogue.client, administration };
    return {
      ...cutCalls(target, cut, between),
      publicUrl,
      credentials,
      accepted: [credentials],
      limits,
      nowUs,
      random: () => 0,
      newSecret: () => secret,
      probe: async () => ({ fault: null, status: 200, tls: null }),
      // Push subscriptions have no queues.
      drain: () => Promise.reject(new Error('A queue was drained.')),
      listDelayMs: 0,
    };
  };
  return {
    catalogue,
    administration,
    moments,
    nowUs,
    /** Advances the clock, and records the account. */
    pass: (us: number) => {
      clockUs += us;
      record();
    },
    /** The dependencies of commands; their calls can be cut. */
    context,
    /** Returns the plan that `register` would apply. */
    plan: (options: ApplyOptions): Promise<Plan> => readPlan(options, context()),
    register: (options: ApplyOptions, cut?: Cut | null) =>
      applyDesired(options, context(cut), { actor: 'register' }),
    close: () => administration.close(),
  };
}

export const silentSinceUs = startUs - 61 * dayUs;
/** A subscription that the service paused after 61 days without a notification, and its registration. */
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

/** Opens an account, and closes it after the test. */
export async function openSetUp(situation: Situation): Promise<AccountSetUp> {
  const setUp = await openAccount(situation);
  onTestFinished(setUp.close);
  return setUp;
}

/** Runs a maintenance round; `inFile` has the subscriptions of `earshot.config.ts`. */
export const round = (
  setUp: AccountSetUp,
  inFile: readonly DesiredSubscription[] | null = null,
  cut: Cut | null = null,
) => maintain(inFile, setUp.context(cut));

/** Returns the history, newest first, such as "register created alps". */
export const historyLines = async (setUp: AccountSetUp) =>
  (await setUp.administration.history({ limit: 100 })).map(
    ({ subscription, action, actor }) => `${actor} ${action} ${subscription}`,
  );
