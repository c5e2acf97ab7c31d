/** What a simulated month left behind, for a test to look at. */
import { expect } from 'vitest';
import { hourUs } from '../../src/domain/completeness.ts';
import {
  type Asked,
  coverageFaults,
  judgeMonth,
  owedEvents,
  readLog,
} from '../simulation/month-truth.ts';
import type { WalkedMonth } from '../simulation/month-walk.ts';
import type { MonthWorld } from '../simulation/month-world.ts';

/** The log against the truth. */
export function resultOf(world: MonthWorld, { asked, idsOf }: WalkedMonth) {
  const owed = owedEvents(world.sandbox, asked, idsOf);
  const logged = readLog(world.dataDir);
  return { owed, logged, ...judgeMonth(owed, logged, world.rounds) };
}

/** Everything once more by command, which must find nothing; then coverage hour by hour, against the truth. */
export async function expectNothingLeft(world: MonthWorld, month: WalkedMonth): Promise<void> {
  const { owed, logged } = resultOf(world, month);
  const window = ['--since', iso(month.fromMs), '--until', iso(month.toMs)];
  const whole = await world.command(['reconcile', ...window, '--json']);
  expect(whole, whole.err).toMatchObject({ code: 0 });
  const again = await world.command(['reconcile', ...window, '--check']);
  expect(again, again.err).toMatchObject({ code: 0 });
  expect(again.err).toContain('Nothing is missing');
  expect(readLog(world.dataDir)).toEqual(logged);
  const fromUs = month.fromMs * 1_000;
  const toUs = Math.floor(month.toMs / 3_600_000) * hourUs;
  const { completeness } = openStore(world);
  const coverage = await completeness.coverage({ sinceUs: fromUs, untilUs: toUs });
  expect(coverage).toHaveLength(3 * ((toUs - fromUs) / hourUs));
  expect(coverageFaults(owed, logged, coverage, { fromUs, toUs })).toEqual([]);
}

/** What the store remembers of what was asked for, as the truth has it. */
export async function definitionsOf(world: MonthWorld) {
  const definitions = await openStore(world).completeness.definitions();
  return definitions.map(({ subscription, events, filter, fromUs }) => {
    return { subscription, events, filter, fromUs };
  });
}

export function withoutEnds(asked: readonly Asked[]) {
  return asked.map(({ toUs: _, ...asIs }) => asIs);
}

export function openStore(world: MonthWorld) {
  const receiver = world.receiver();
  if (receiver === null) throw new Error('The receiver is closed.');
  return receiver.store;
}

/** The hours of `coverage --json`, by subscription. */
export async function reportedHours(world: MonthWorld, since: string) {
  const { code, out, err } = await world.command(['coverage', '--since', since, '--json']);
  expect(code, err).toBe(0);
  return JSON.parse(out);
}

const iso = (ms: number) => new Date(ms).toISOString();
