/** Lets a month pass, hour by hour, with outages of ours, pauses and replacements at seeded moments. */
import { createRandom } from '../src/sandbox/random.ts';
import { createMonthAccount, type MonthAccount } from './month-account.ts';
import { compared, createMonthHours, type HoursOptions, type MonthHours } from './month-hours.ts';
import type { Asked } from './month-truth.ts';
import type { MonthWorld } from './month-world.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Specification, Limits: the catalogue pauses a subscription without a notification for so long. */
const inactivityMs = 60 * dayMs;

export interface MonthOptions extends HoursOptions {
  seed: number;
  days: number;
  /** Of the subscription `acquisitions`, before and after it is replaced. */
  filters?: { before: string; after: string };
  onHour?: ((done: number, hours: number) => void) | undefined;
}

/** What the month was like, as far as the sandbox does not know. */
export interface WalkedMonth {
  fromMs: number;
  toMs: number;
  asked: readonly Asked[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
}

const someCollections = {
  before: "Collection/Name eq 'SENTINEL-1' or Collection/Name eq 'SENTINEL-2'",
  after: "Collection/Name eq 'SENTINEL-2' or Collection/Name eq 'SENTINEL-3'",
};

/**
 * The subscription `deletions` is paused by the catalogue after the first days, as it had nothing to tell of
 * for sixty; maintenance finds that a day later. In the last 26 hours nothing happens: what was late is shown by
 * then, and was looked for twice.
 * Rejects when a command of the month fails.
 */
export async function walkMonth(world: MonthWorld, options: MonthOptions): Promise<WalkedMonth> {
  const account = createMonthAccount(world);
  const { filters = someCollections } = options;
  const hours = options.days * 24;
  const acts = actsOf(world, account, options);
  // Deletions are asked for long before, so that the sixty days end within the month.
  const quietMs = inactivityMs - Math.floor(options.days / 10) * dayMs;
  const silentUntil = new Date(world.nowMs() + inactivityMs - hourMs).toISOString();
  const deletions = { events: ['deleted'], filter: `DeletionDate ge ${silentUntil}` } as const;
  await account.want({ deletions });
  world.sandbox.clock.advance(quietMs);
  await world.markUp();
  const fromMs = world.nowMs();
  const acquisitions = { events: ['created', 'modified'], filter: filters.before } as const;
  await account.want({ acquisitions, deletions });
  const walk = createMonthHours(world, options);
  for (let hour = 0; hour < hours; ) {
    const act = acts.get(hour);
    const spent = (await act?.(walk)) ?? 0;
    if (spent === 0) await walk.pass(1);
    hour += Math.max(1, spent);
    options.onHour?.(hour, hours);
  }
  await walk.calm(26);
  return { fromMs, toMs: world.nowMs(), asked: account.asked(), idsOf: account.idsOf };
}

/** Returns how many hours it took; 0 for none. */
type Act = (walk: MonthHours) => Promise<number>;

/** By the hour at which they begin. */
function actsOf(world: MonthWorld, account: MonthAccount, options: MonthOptions) {
  const { seed, days, filters = someCollections } = options;
  const random = createRandom(seed);
  const day = (share: number) => Math.floor(share * days) * 24 + random.integer(3, 9);
  const outage =
    (hours: number): Act =>
    async (walk) => {
      await world.shut();
      await walk.pass(hours);
      await world.open();
      await compared(world);
      return hours;
    };
  const minutes: Act = async (walk) => {
    await world.shut();
    await walk.publish(7 * minuteMs, Math.ceil((walk.perHour * 7) / 60));
    await world.open();
    await compared(world);
    return 0;
  };
  return new Map<number, Act>([
    [day(0.06), minutes],
    // The day after that on which the catalogue pauses it.
    [(Math.floor(days / 10) + 1) * 24, () => maintained(world)],
    [day(0.24), outage(3)],
    [day(0.34), pauseOf(world, 20)],
    [day(0.48), replacementOf(world, account, filters.after)],
    [day(0.6), outage(Math.round(Math.min(2.5, days / 8) * 24))],
    [day(0.83), minutes],
  ]);
}

async function maintained({ maintain }: MonthWorld): Promise<number> {
  await maintain();
  return 0;
}

/** A person pauses it with our command, and resumes it. */
function pauseOf({ command }: MonthWorld, hours: number): Act {
  return async (walk) => {
    const order = async (verb: string) => {
      const { code, err } = await command(['subscriptions', verb, 'acquisitions']);
      if (code !== 0) throw new Error(`${verb} failed: ${err}`);
    };
    await order('pause');
    await walk.pass(hours);
    await order('resume');
    return hours;
  };
}

/** The filter changes where only two may run: for eight minutes, neither the old nor the new one does. */
function replacementOf(world: MonthWorld, account: MonthAccount, changed: string): Act {
  const isRunning = () =>
    world.sandbox
      .subscriptions()
      .some(({ status, endpoint }) => status === 'running' && endpoint?.endsWith('/acquisitions'));
  return async (walk) => {
    const { events = [] } =
      account.asked().findLast(({ subscription }) => subscription === 'acquisitions') ?? {};
    const deletions = account.asked().find(({ subscription }) => subscription === 'deletions');
    if (deletions === undefined) throw new Error('There is no subscription to deletions.');
    let isPast = false;
    const send: typeof fetch = async (...request) => {
      if (!isPast && !isRunning()) {
        isPast = true;
        await walk.publish(8 * minuteMs, 8);
      }
      return fetch(...request);
    };
    const { filter } = deletions;
    await account.want(
      {
        acquisitions: { events, filter: changed },
        deletions: { events: ['deleted'], filter },
      },
      send,
    );
    if (!isPast) throw new Error('The replacement left no gap.');
    return 0;
  };
}
