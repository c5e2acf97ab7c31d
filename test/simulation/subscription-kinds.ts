/** Kinds of subscriptions, simulated hour by hour: number and distribution of their pushes. */
import type { Random } from '../../src/sandbox/clock.ts';

/** Returns the pushes of an hour, counted from the simulation's beginning. Called in ascending order. */
type PushesOfHour = (hour: number) => number;

export interface SubscriptionKind {
  readonly name: string;
  /** Creates a subscription of the kind, with random passes of its own. */
  readonly create: (random: Random) => PushesOfHour;
}

const hoursOfDay = 24;

export const subscriptionKinds: readonly SubscriptionKind[] = [
  {
    // 32,000 a day: a steady part, and 40 datatakes a day of 150 to 600 products each.
    name: 'everything',
    create: (random) => () => {
      const datatakes = poisson(40 / hoursOfDay, random);
      let pushes = poisson(17_000 / hoursOfDay, random);
      for (let i = 0; i < datatakes; i += 1) pushes += random.integer(150, 600);
      return pushes;
    },
  },
  // Some hundred a day in two or three passes, each on fixed days of a cycle of 5, 10 or 12 days.
  { name: 'country', create: country },
  {
    // One to three a day, at fixed passes on fixed days of a cycle of 10 or 12 days.
    name: 'small area',
    create: (random) =>
      passes(random, {
        ...{ passes: random.integer(3, 5), cycleDays: random.pick([10, 12]), dayShare: 0.5 },
        ...{ dropShare: 0.1, lateHours: 3, pushes: () => 1 },
      }),
  },
  {
    // One in 5 to 12 days by the repeat cycle, one in ten of which is not acquired.
    name: 'every few days',
    create: (random) =>
      passes(random, {
        ...{ passes: 1, cycleDays: random.integer(5, 12), dayShare: 0 },
        ...{ dropShare: 0.1, lateHours: 6, pushes: () => 1 },
      }),
  },
  {
    // One in three days on average, at any time: few acquisitions are free of clouds.
    name: 'by chance',
    create: (random) => () => poisson(1 / (3 * hoursOfDay), random),
  },
  {
    // About 20 an hour from 7 to 19 o'clock, uneven, and almost nothing at night.
    name: 'by day',
    create: (random) => (hour) => {
      const isDay = hour % hoursOfDay >= 7 && hour % hoursOfDay < 19;
      return poisson((isDay ? 20 : 0.05) * exponential(random), random);
    },
  },
  {
    // Like country, but once in 45 days the catalogue sends nothing for 6 to 24 hours, then everything.
    name: 'with standstills',
    create: (random) => withStandstills(random, country(random)),
  },
];

function country(random: Random): PushesOfHour {
  return passes(random, {
    ...{ passes: random.integer(4, 6), cycleDays: random.pick([5, 10, 12]), dayShare: 0.5 },
    ...{ dropShare: 0.05, lateHours: 1.5, pushes: () => random.integer(40, 180) },
  });
}

interface Passes {
  /** Number of passes per cycle, each at its hour. */
  passes: number;
  /** Repeat cycle, in days. */
  cycleDays: number;
  /** Probability that a pass sees the area on a day of the cycle; on one day it always does. */
  dayShare: number;
  /** Share of the passes over the area that result in no products. */
  dropShare: number;
  /** Maximum delay of the pushes after the pass, in hours. */
  lateHours: number;
  pushes: () => number;
}

function passes(random: Random, options: Passes): PushesOfHour {
  const { cycleDays, dayShare, dropShare, lateHours } = options;
  const all = Array.from({ length: options.passes }, () => {
    const sure = random.integer(0, cycleDays - 1);
    const days = Array.from(
      { length: cycleDays },
      (_, day) => day === sure || random.chance(dayShare),
    );
    return { hour: random.between(0, hoursOfDay), days };
  });
  const waiting = new Map<number, number>();
  return (hour) => {
    for (const pass of hour % hoursOfDay === 0 ? all : []) {
      if (!pass.days[(hour / hoursOfDay) % cycleDays] || random.chance(dropShare)) continue;
      const at = Math.floor(hour + pass.hour + random.next() * lateHours);
      waiting.set(at, (waiting.get(at) ?? 0) + options.pushes());
    }
    const pushes = waiting.get(hour) ?? 0;
    waiting.delete(hour);
    return pushes;
  };
}

function withStandstills(random: Random, pushesOf: PushesOfHour): PushesOfHour {
  let [endsAt, delayed] = [0, 0];
  return (hour) => {
    delayed += pushesOf(hour);
    const begins = hour >= endsAt && random.chance(1 / (45 * hoursOfDay));
    if (begins) endsAt = hour + random.integer(6, 24);
    const pushes = hour < endsAt ? 0 : delayed;
    delayed -= pushes;
    return pushes;
  };
}

function exponential(random: Random): number {
  return -Math.log(1 - random.next());
}

/** Draws a Poisson number: exact for small means (Knuth), else approximated by the normal distribution. */
function poisson(mean: number, random: Random): number {
  if (mean > 50) {
    const normal = Math.sqrt(2 * exponential(random)) * Math.cos(2 * Math.PI * random.next());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * normal));
  }
  const limit = Math.exp(-mean);
  let count = 0;
  for (let product = random.next(); product > limit; product *= random.next()) count += 1;
  return count;
}
