/** Lets the time of a simulated month pass by the hour, with rounds of comparing while the receiver is up. */
import type { MonthWorld } from './month-world.ts';

const hourMs = 3_600_000;

/** Without products, the sandbox takes a step for each change that is planned, and plans so many ahead at most. */
const plannedStepsMax = 60;

export interface HoursOptions {
  productsPerDay: number;
  /** Hours between two rounds of comparing. */
  roundHours: number;
}

export interface MonthHours {
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
  world: MonthWorld,
  { productsPerDay, roundHours }: HoursOptions,
): MonthHours {
  const perHour = Math.max(1, Math.round(productsPerDay / 21));
  let sinceRound = 0;
  const afterHour = async () => {
    if (world.receiver() === null) return;
    await world.markUp();
    sinceRound += 1;
    if (sinceRound < roundHours) return;
    sinceRound = 0;
    await compared(world);
  };
  // Each product at a moment of its own: without an AckId, two changes of one moment could not be told apart.
  const publish: MonthHours['publish'] = (durationMs, products) =>
    world.sandbox.pass({ durationMs, products });
  return {
    publish,
    perHour,
    pass: async (hours) => {
      for (let i = 0; i < hours; i += 1) {
        const isNight = new Date(world.nowMs()).getUTCHours() < 3;
        await publish(hourMs, isNight ? 0 : perHour);
        await afterHour();
      }
    },
    calm: async (hours) => {
      await world.sandbox.pass({ durationMs: hourMs, products: 0, steps: plannedStepsMax });
      await afterHour();
      for (let i = 0; i < hours; i += 1) {
        await publish(hourMs, 0);
        await afterHour();
      }
      await compared(world);
    },
  };
}

/** Rejects when the round failed. */
export async function compared({ compare, troubles }: MonthWorld): Promise<void> {
  if (await compare()) return;
  throw new Error(`A round of comparing failed: ${troubles.slice(-3).join('; ')}`);
}
