/** Simulates a month hour by hour, with receiver outages, pauses and replacements at seeded times. */
import { notificationDelayUs } from '../../src/core/terms/subscription.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import type { MonthContext } from './month-context.ts';
import type { KnownMonth, SubscriptionPeriod } from './month-results.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Time without a notification after which the catalogue pauses a subscription (specification, Limits). */
const inactivityMs = 60 * dayMs;

interface MonthOptions extends HoursOptions {
  seed: number;
  days: number;
}

export interface SimulatedMonth extends KnownMonth {
  fromMs: number;
  toMs: number;
}

/** Returns a definition of the subscription `acquisitions`. */
const acquisitionsOf = (...missions: string[]): Definition => ({
  events: ['created', 'modified'],
  filter: missions.map((name) => `Collection/Name eq '${name}'`).join(' or '),
});

/**
 * Simulates the month. The catalogue pauses the subscription `deletions` after the first days, after sixty days
 * without notifications; maintenance finds that a day later. The last 26 hours are without events, so that
 * delayed records are shown and compared twice.
 * Rejects when a command of the month fails.
 */
export async function simulateMonth(
  context: MonthContext,
  options: MonthOptions,
): Promise<SimulatedMonth> {
  const { nowMs, sandbox } = context;
  const account = createMonthAccount(context);
  const month = createMonthHours(context, options);
  // Deletions are registered long before, so that the sixty days end within the month.
  const quietMs = inactivityMs - Math.floor(options.days / 10) * dayMs;
  const silentUntil = new Date(nowMs() + inactivityMs).toISOString();
  const deletions = { events: ['deleted'], filter: `DeletionDate ge ${silentUntil}` } as const;
  await account.register({ deletions });
  sandbox.clock.advance(quietMs);
  await context.recordUptime();
  const fromMs = nowMs();
  await account.register({ acquisitions: acquisitionsOf('SENTINEL-1', 'SENTINEL-2'), deletions });
  const replace = (send: typeof fetch) =>
    account.register({ acquisitions: acquisitionsOf('SENTINEL-2', 'SENTINEL-3'), deletions }, send);
  const incidents = incidentsOf(context, month, options, replace);
  const hours = options.days * 24;
  for (let hour = 0; hour < hours; ) {
    const spent = (await incidents.get(hour)?.()) ?? 0;
    if (spent === 0) await month.pass(1);
    hour += Math.max(1, spent);
  }
  await month.calm(26);
  return { fromMs, toMs: nowMs(), periods: account.periods(), idsOf: account.idsOf };
}

/** Incident of the month; returns how many hours it took, or 0. */
type Incident = () => Promise<number>;

/** Returns the incidents by the hour at which they begin. */
function incidentsOf(
  context: MonthContext,
  { pass, publish, perHour }: MonthHours,
  { seed, days }: MonthOptions,
  replace: (send: typeof fetch) => Promise<void>,
): Map<number, Incident> {
  const { shut, open, compare, maintain, command, sandbox } = context;
  const random = createRandom(seed);
  const day = (share: number) => Math.floor(share * days) * 24 + random.integer(3, 9);
  const whileStopped = async (during: () => Promise<unknown>, hours: number) => {
    await shut();
    await during();
    await open();
    await compare();
    return hours;
  };
  const outage =
    (hours: number): Incident =>
    () =>
      whileStopped(() => pass(hours), hours);
  const minutes: Incident = () =>
    whileStopped(() => publish(7 * minuteMs, Math.ceil((perHour * 7) / 60)), 0);
  /** A person pauses the subscription, and resumes it. */
  const pause: Incident = async () => {
    const order = async (verb: string) => {
      const { code, err } = await command(['subscriptions', verb, 'acquisitions']);
      if (code !== 0) throw new Error(`${verb} failed: ${err}`);
    };
    await order('pause');
    await pass(20);
    await order('resume');
    return 20;
  };
  /** Only two subscriptions may run: for eight minutes, neither the old nor the new one runs. */
  const replacement: Incident = async () => {
    let isPast = false;
    const isRunning = () =>
      sandbox
        .subscriptions()
        .some((one) => one.status === 'running' && one.endpoint?.endsWith('/acquisitions'));
    await replace(async (...request) => {
      if (!isPast && !isRunning()) {
        isPast = true;
        await publish(8 * minuteMs, 8);
      }
      return fetch(...request);
    });
    if (!isPast) throw new Error('The replacement left no gap.');
    return 0;
  };
  return new Map([
    [day(0.06), minutes],
    // The day after the pause by the catalogue.
    [(Math.floor(days / 10) + 1) * 24, () => maintain().then(() => 0)],
    [day(0.24), outage(3)],
    [day(0.34), pause],
    [day(0.48), replacement],
    [day(0.6), outage(Math.round(Math.min(2.5, days / 8) * 24))],
    [day(0.83), minutes],
  ]);
}

/** Definition of a subscription, as in `earshot.config.ts`. */
type Definition = Pick<SubscriptionPeriod, 'events' | 'filter'>;

interface MonthAccount {
  /** Registers the subscriptions; `send` replaces `fetch`. Rejects when the command fails. */
  register(subscriptions: Record<string, Definition>, send?: typeof fetch): Promise<void>;
  /** Oldest first. */
  periods(): readonly SubscriptionPeriod[];
  idsOf: KnownMonth['idsOf'];
}

export function createMonthAccount({ sandbox, register, nowMs }: MonthContext): MonthAccount {
  const ids = new Map<string, Set<string>>();
  const periods: SubscriptionPeriod[] = [];
  return {
    register: async (subscriptions, send) => {
      await register(subscriptions, send);
      for (const { endpoint, id } of sandbox.subscriptions()) {
        const name = endpoint?.split('/').at(-1) ?? '';
        ids.set(name, (ids.get(name) ?? new Set()).add(id));
      }
      const atUs = Math.trunc(nowMs()) * 1_000;
      for (const [subscription, { events, filter }] of Object.entries(subscriptions)) {
        const last = periods.findLast((one) => one.subscription === subscription);
        if (last?.filter === filter) continue;
        if (last !== undefined) last.toUs = atUs;
        // What was published shortly before the registration is pushed after it.
        const fromUs = last === undefined ? atUs - notificationDelayUs : atUs;
        periods.push({ subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY });
      }
    },
    periods: () => periods,
    idsOf: (subscription) => ids.get(subscription) ?? new Set<string>(),
  };
}

/** Maximum number of changes that the sandbox plans ahead; without new products, each is one step. */
export const plannedStepsMax = 60;

/** At night nothing is published, so that some hours are quiet. */
export const isNight = (nowMs: number) => new Date(nowMs).getUTCHours() < 3;

interface HoursOptions {
  productsPerDay: number;
  /** Hours between two comparisons. */
  roundHours: number;
}

interface MonthHours {
  /** Products per hour during the day. */
  perHour: number;
  /** Publishes products, spread over the given time. */
  publish(durationMs: number, products: number): Promise<unknown>;
  /** Simulates whole hours with their products. */
  pass(hours: number): Promise<void>;
  /** Simulates an hour with the planned changes, then hours without events; compares at the end. */
  calm(hours: number): Promise<void>;
}

/** Creates the simulation of hours. */
export function createMonthHours(
  { sandbox, receiver, recordUptime, compare, nowMs }: MonthContext,
  { productsPerDay, roundHours }: HoursOptions,
): MonthHours {
  const perHour = Math.max(1, Math.round(productsPerDay / 21));
  let sinceRound = 0;
  const afterHour = async () => {
    if (receiver() === null) return;
    await recordUptime();
    sinceRound = (sinceRound + 1) % roundHours;
    if (sinceRound === 0) await compare();
  };
  // Each product has its own time: without AckIds, two changes of the same time could not be distinguished.
  const publish: MonthHours['publish'] = (durationMs, products) =>
    sandbox.pass({ durationMs, products });
  const passWith = async (hours: number, products: () => number) => {
    for (let i = 0; i < hours; i += 1) {
      await publish(hourMs, products());
      await afterHour();
    }
  };
  return {
    ...{ publish, perHour },
    pass: (hours) => passWith(hours, () => (isNight(nowMs()) ? 0 : perHour)),
    calm: async (hours) => {
      await sandbox.pass({ durationMs: hourMs, products: 0, steps: plannedStepsMax });
      await afterHour();
      await passWith(hours, () => 0);
      await compare();
    },
  };
}
