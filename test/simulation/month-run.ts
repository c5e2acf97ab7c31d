/** Simulates a month hour by hour, with receiver outages, pauses and replacements at seeded times. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { notificationDelayUs } from '../../src/core/terms/catalogue-events.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import type { MonthContext } from './month-context.ts';
import type { SubscriptionPeriod } from './month-results.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const dayMs = 24 * hourMs;

/** Time without a notification after which the catalogue pauses a subscription (specification, Limits). */
const inactivityMs = 60 * dayMs;

interface MonthOptions extends HoursOptions {
  seed: number;
  days: number;
  /** Filters of the subscription `acquisitions` before and after its replacement. */
  filters?: { before: string; after: string };
  onHour?: ((done: number, hours: number) => void) | undefined;
}

/** Facts about the month that the sandbox does not record. */
export interface SimulatedMonth {
  fromMs: number;
  toMs: number;
  periods: readonly SubscriptionPeriod[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
}

const someCollections = {
  before: "Collection/Name eq 'SENTINEL-1' or Collection/Name eq 'SENTINEL-2'",
  after: "Collection/Name eq 'SENTINEL-2' or Collection/Name eq 'SENTINEL-3'",
};

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
  const account = createMonthAccount(context);
  const { filters = someCollections } = options;
  const hours = options.days * 24;
  const incidents = incidentsOf(context, account, options);
  // Deletions are registered long before, so that the sixty days end within the month.
  const quietMs = inactivityMs - Math.floor(options.days / 10) * dayMs;
  const silentUntil = new Date(context.nowMs() + inactivityMs).toISOString();
  const deletions = { events: ['deleted'], filter: `DeletionDate ge ${silentUntil}` } as const;
  await account.register({ deletions });
  context.sandbox.clock.advance(quietMs);
  await context.recordUptime();
  const fromMs = context.nowMs();
  const acquisitions = { events: ['created', 'modified'], filter: filters.before } as const;
  await account.register({ acquisitions, deletions });
  const simulation = createMonthHours(context, options);
  for (let hour = 0; hour < hours; ) {
    const incident = incidents.get(hour);
    const spent = (await incident?.(simulation)) ?? 0;
    if (spent === 0) await simulation.pass(1);
    hour += Math.max(1, spent);
    options.onHour?.(hour, hours);
  }
  await simulation.calm(26);
  return { fromMs, toMs: context.nowMs(), periods: account.periods(), idsOf: account.idsOf };
}

/** Incident of the month; returns how many hours it took, or 0. */
type Incident = (simulation: MonthHours) => Promise<number>;

/** Returns the incidents by the hour at which they begin. */
function incidentsOf(context: MonthContext, account: MonthAccount, options: MonthOptions) {
  const { seed, days, filters = someCollections } = options;
  const random = createRandom(seed);
  const day = (share: number) => Math.floor(share * days) * 24 + random.integer(3, 9);
  const whileStopped = async (during: () => Promise<unknown>) => {
    await context.shut();
    await during();
    await context.open();
    await runComparison(context);
  };
  const outage =
    (hours: number): Incident =>
    async (simulation) => {
      await whileStopped(() => simulation.pass(hours));
      return hours;
    };
  const minutes: Incident = async (simulation) => {
    await whileStopped(() =>
      simulation.publish(7 * minuteMs, Math.ceil((simulation.perHour * 7) / 60)),
    );
    return 0;
  };
  return new Map<number, Incident>([
    [day(0.06), minutes],
    // The day after the pause by the catalogue.
    [(Math.floor(days / 10) + 1) * 24, () => context.maintain().then(() => 0)],
    [day(0.24), outage(3)],
    [day(0.34), pauseOf(context, 20)],
    [day(0.48), replacementOf(context, account, filters.after)],
    [day(0.6), outage(Math.round(Math.min(2.5, days / 8) * 24))],
    [day(0.83), minutes],
  ]);
}

/** Pauses the subscription with the earshot command, and resumes it. */
function pauseOf({ command }: MonthContext, hours: number): Incident {
  return async (simulation) => {
    const order = async (verb: string) => {
      const { code, err } = await command(['subscriptions', verb, 'acquisitions']);
      if (code !== 0) throw new Error(`${verb} failed: ${err}`);
    };
    await order('pause');
    await simulation.pass(hours);
    await order('resume');
    return hours;
  };
}

/** Changes the filter although only two subscriptions may run: for eight minutes, neither the old nor the new one runs. */
function replacementOf(context: MonthContext, account: MonthAccount, changed: string): Incident {
  const isRunning = () =>
    context.sandbox
      .subscriptions()
      .some(({ status, endpoint }) => status === 'running' && endpoint?.endsWith('/acquisitions'));
  return async (simulation) => {
    const periodOf = (name: string) =>
      account.periods().findLast(({ subscription }) => subscription === name);
    const [acquisitions, deletions] = [periodOf('acquisitions'), periodOf('deletions')];
    if (acquisitions === undefined || deletions === undefined)
      throw new Error('Nothing was registered.');
    let isPast = false;
    const send: typeof fetch = async (...request) => {
      if (!isPast && !isRunning()) {
        isPast = true;
        await simulation.publish(8 * minuteMs, 8);
      }
      return fetch(...request);
    };
    const { events } = acquisitions;
    const { events: deleted, filter } = deletions;
    const changedOnly = { acquisitions: { events, filter: changed } };
    await account.register({ ...changedOnly, deletions: { events: deleted, filter } }, send);
    if (!isPast) throw new Error('The replacement left no gap.');
    return 0;
  };
}

/** Subscriptions by name, as in `earshot.config.ts`. */
type RequestedSubscriptions = Record<string, Pick<SubscriptionPeriod, 'events' | 'filter'>>;

interface MonthAccount {
  /** Registers the subscriptions; `send` replaces `fetch`. Rejects when the command fails. */
  register(subscriptions: RequestedSubscriptions, send?: typeof fetch): Promise<void>;
  /** Oldest first. */
  periods(): readonly SubscriptionPeriod[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
}

export function createMonthAccount({
  folder,
  sandbox,
  command,
  nowMs,
}: MonthContext): MonthAccount {
  const ids = new Map<string, Set<string>>();
  let periods: SubscriptionPeriod[] = [];
  const recordIds = () => {
    for (const { endpoint, id } of sandbox.subscriptions()) {
      const name = endpoint?.split('/').at(-1) ?? '';
      ids.set(name, (ids.get(name) ?? new Set()).add(id));
    }
  };
  return {
    register: async (subscriptions, send) => {
      const text = `export default ${JSON.stringify({ subscriptions })};\n`;
      writeFileSync(join(folder, 'earshot.config.ts'), text);
      const { code, err } = await command(['register', '--yes'], send);
      if (code !== 0) throw new Error(`register failed: ${err}`);
      recordIds();
      const atUs = Math.trunc(nowMs()) * 1_000;
      for (const [subscription, { events, filter }] of Object.entries(subscriptions)) {
        const last = periods.findLast((one) => one.subscription === subscription);
        if (last?.filter === filter) continue;
        if (last !== undefined) last.toUs = atUs;
        // What was published shortly before the registration is pushed after it.
        const fromUs = last === undefined ? atUs - notificationDelayUs : atUs;
        const next = { subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY };
        periods = [...periods, next];
      }
    },
    periods: () => periods,
    idsOf: (subscription) => ids.get(subscription) ?? new Set<string>(),
  };
}

/** Maximum number of changes that the sandbox plans ahead; without new products, each is one step. */
const plannedStepsMax = 60;

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

/** Creates the simulation of hours. At night nothing is published, so that some hours are quiet. */
export function createMonthHours(
  context: MonthContext,
  { productsPerDay, roundHours }: HoursOptions,
): MonthHours {
  const perHour = Math.max(1, Math.round(productsPerDay / 21));
  let sinceRound = 0;
  const afterHour = async () => {
    if (context.receiver() === null) return;
    await context.recordUptime();
    sinceRound += 1;
    if (sinceRound < roundHours) return;
    sinceRound = 0;
    await runComparison(context);
  };
  // Each product has its own time: without AckIds, two changes of the same time could not be distinguished.
  const publish: MonthHours['publish'] = (durationMs, products) =>
    context.sandbox.pass({ durationMs, products });
  return {
    publish,
    perHour,
    pass: async (hours) => {
      for (let i = 0; i < hours; i += 1) {
        const isNight = new Date(context.nowMs()).getUTCHours() < 3;
        await publish(hourMs, isNight ? 0 : perHour);
        await afterHour();
      }
    },
    calm: async (hours) => {
      await context.sandbox.pass({
        durationMs: hourMs,
        products: 0,
        steps: plannedStepsMax,
      });
      await afterHour();
      for (let i = 0; i < hours; i += 1) {
        await publish(hourMs, 0);
        await afterHour();
      }
      await runComparison(context);
    },
  };
}

/** Runs a comparison. Rejects when it failed. */
async function runComparison({ compare, problems }: MonthContext): Promise<void> {
  if (await compare()) return;
  throw new Error(`A comparison failed: ${problems.slice(-3).join('; ')}`);
}
