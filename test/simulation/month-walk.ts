/** Lets a month pass, hour by hour, with outages of ours, pauses and replacements at seeded moments. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { notificationDelayUs } from '../../src/domain/completeness.ts';
import { createRandom } from '../../src/sandbox/clock.ts';
import type { MonthContext } from './month-context.ts';
import type { Asked } from './month-truth.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

const dayMs = 24 * hourMs;

/** Specification, Limits: the catalogue pauses a subscription without a notification for so long. */
const inactivityMs = 60 * dayMs;

interface MonthOptions extends HoursOptions {
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
export async function walkMonth(
  context: MonthContext,
  options: MonthOptions,
): Promise<WalkedMonth> {
  const account = createMonthAccount(context);
  const { filters = someCollections } = options;
  const hours = options.days * 24;
  const acts = actsOf(context, account, options);
  // Deletions are asked for long before, so that the sixty days end within the month.
  const quietMs = inactivityMs - Math.floor(options.days / 10) * dayMs;
  const silentUntil = new Date(context.nowMs() + inactivityMs - hourMs).toISOString();
  const deletions = { events: ['deleted'], filter: `DeletionDate ge ${silentUntil}` } as const;
  await account.want({ deletions });
  context.sandbox.clock.advance(quietMs);
  await context.recordUptime();
  const fromMs = context.nowMs();
  const acquisitions = { events: ['created', 'modified'], filter: filters.before } as const;
  await account.want({ acquisitions, deletions });
  const walk = createMonthHours(context, options);
  for (let hour = 0; hour < hours; ) {
    const act = acts.get(hour);
    const spent = (await act?.(walk)) ?? 0;
    if (spent === 0) await walk.pass(1);
    hour += Math.max(1, spent);
    options.onHour?.(hour, hours);
  }
  await walk.calm(26);
  return { fromMs, toMs: context.nowMs(), asked: account.asked(), idsOf: account.idsOf };
}

/** Returns how many hours it took; 0 for none. */
type Act = (walk: MonthHours) => Promise<number>;

/** By the hour at which they begin. */
function actsOf(context: MonthContext, account: MonthAccount, options: MonthOptions) {
  const { seed, days, filters = someCollections } = options;
  const random = createRandom(seed);
  const day = (share: number) => Math.floor(share * days) * 24 + random.integer(3, 9);
  const away = async (during: () => Promise<unknown>) => {
    await context.shut();
    await during();
    await context.open();
    await compared(context);
  };
  const outage =
    (hours: number): Act =>
    async (walk) => {
      await away(() => walk.pass(hours));
      return hours;
    };
  const minutes: Act = async (walk) => {
    await away(() => walk.publish(7 * minuteMs, Math.ceil((walk.perHour * 7) / 60)));
    return 0;
  };
  return new Map<number, Act>([
    [day(0.06), minutes],
    // The day after that on which the catalogue pauses it.
    [(Math.floor(days / 10) + 1) * 24, () => context.maintain().then(() => 0)],
    [day(0.24), outage(3)],
    [day(0.34), pauseOf(context, 20)],
    [day(0.48), replacementOf(context, account, filters.after)],
    [day(0.6), outage(Math.round(Math.min(2.5, days / 8) * 24))],
    [day(0.83), minutes],
  ]);
}

/** A person pauses it with our command, and resumes it. */
function pauseOf({ command }: MonthContext, hours: number): Act {
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
function replacementOf(context: MonthContext, account: MonthAccount, changed: string): Act {
  const isRunning = () =>
    context.sandbox
      .subscriptions()
      .some(({ status, endpoint }) => status === 'running' && endpoint?.endsWith('/acquisitions'));
  return async (walk) => {
    const asked = (name: string) =>
      account.asked().findLast(({ subscription }) => subscription === name);
    const [acquisitions, deletions] = [asked('acquisitions'), asked('deletions')];
    if (acquisitions === undefined || deletions === undefined)
      throw new Error('Nothing was asked.');
    let isPast = false;
    const send: typeof fetch = async (...request) => {
      if (!isPast && !isRunning()) {
        isPast = true;
        await walk.publish(8 * minuteMs, 8);
      }
      return fetch(...request);
    };
    const { events } = acquisitions;
    const { events: deleted, filter } = deletions;
    const wanted = { acquisitions: { events, filter: changed } };
    await account.want({ ...wanted, deletions: { events: deleted, filter } }, send);
    if (!isPast) throw new Error('The replacement left no gap.');
    return 0;
  };
}

/** Subscriptions by name, as `earshot.config.ts` has them. */
type Wanted = Record<string, Pick<Asked, 'events' | 'filter'>>;

interface MonthAccount {
  /** Registers; `send` stands between the command and the network. Rejects when the command fails. */
  want(subscriptions: Wanted, send?: typeof fetch): Promise<void>;
  /** Oldest first. */
  asked(): readonly Asked[];
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
  let asked: Asked[] = [];
  const noteIds = () => {
    for (const { endpoint, id } of sandbox.subscriptions()) {
      const name = endpoint?.split('/').at(-1) ?? '';
      ids.set(name, (ids.get(name) ?? new Set()).add(id));
    }
  };
  return {
    want: async (subscriptions, send) => {
      const text = `export default ${JSON.stringify({ subscriptions })};\n`;
      writeFileSync(join(folder, 'earshot.config.ts'), text);
      const { code, err } = await command(['register', '--yes'], send);
      if (code !== 0) throw new Error(`register failed: ${err}`);
      noteIds();
      const atUs = Math.trunc(nowMs()) * 1_000;
      for (const [subscription, { events, filter }] of Object.entries(subscriptions)) {
        const last = asked.findLast((one) => one.subscription === subscription);
        if (last?.filter === filter) continue;
        if (last !== undefined) last.toUs = atUs;
        // What was published shortly before the registration is pushed after it.
        const fromUs = last === undefined ? atUs - notificationDelayUs : atUs;
        const next = { subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY };
        asked = [...asked, next];
      }
    },
    asked: () => asked,
    idsOf: (subscription) => ids.get(subscription) ?? new Set<string>(),
  };
}

/** Without products, the sandbox takes a step for each change that is planned, and plans so many ahead at most. */
const plannedStepsMax = 60;

interface HoursOptions {
  productsPerDay: number;
  /** Hours between two rounds of comparing. */
  roundHours: number;
}

interface MonthHours {
  /** Products of an hour that is not at night. */
  perHour: number;
  /** Products, spread over a time that passes. */
  publish(durationMs: number, products: number): Promise<unknown>;
  /** Whole hours with their products. */
  pass(hours: number): Promise<void>;
  /** An hour with what was planned to become of products, then whole hours without any event; compares at the end. */
  calm(hours: number): Promise<void>;
}

/** At night nothing is published, so that some hours are quiet. */
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
    await compared(context);
  };
  // Each product at a moment of its own: without an AckId, two changes of one moment could not be told apart.
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
      await compared(context);
    },
  };
}

/** Rejects when the round failed. */
async function compared({ compare, troubles }: MonthContext): Promise<void> {
  if (await compare()) return;
  throw new Error(`A round of comparing failed: ${troubles.slice(-3).join('; ')}`);
}
