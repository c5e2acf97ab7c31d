/** Registration cut at every single call, before and after its effect: run again, it ends the same. */
import { describe, expect, it } from 'vitest';
import { maintain } from '../../../src/admin/maintain.ts';
import type { Cut } from './cut-calls.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import { dayUs, minuteUs } from './plan-samples.ts';
import { type Scenario, scenarios } from './plan-scenarios.ts';
import { openPlanWorld, type PlanWorld } from './plan-world.ts';

/** Every way to cut a scenario: as many calls as an uncut run makes, twice two ways each. */
async function cutsOf({ situation, options }: Scenario): Promise<Cut[]> {
  const world = await openPlanWorld(situation);
  await world.register(options);
  const calls = world.calls().length;
  world.close();
  expect(calls).toBeGreaterThan(2);
  return Array.from({ length: calls }, (_, call) => call).flatMap((call) =>
    (['before', 'after'] as const).flatMap((when) =>
      (['killed', 'unavailable'] as const).map((how) => ({ call, when, how })),
    ),
  );
}

async function expectEnded(
  world: PlanWorld,
  { options, others = [], situation, events }: Scenario,
): Promise<void> {
  await expectSettled(world, options, others);
  const gaps = await world.administration.gaps();
  const lasting = gaps.filter(({ toUs }) => toUs === null).map(({ subscription }) => subscription);
  const paused = options.desired.filter(({ status }) => status === 'paused');
  expect(paused.map(({ name }) => name)).toEqual(expect.arrayContaining(lasting));
  if (events === null) return;
  const before = situation.held?.find(({ id }) => id === 'id-alps');
  const after = options.desired.find(({ name }) => name === 'alps');
  const versions: { events: readonly string[]; filter: string }[] = [];
  for (const version of [before, after]) if (version !== undefined) versions.push(version);
  expectNoEventLost(world.moments, gaps, { name: 'alps', versions, ...events });
}

/** Lets `disturb` cut each call in a world of its own, registers, and tells which cuts left traces. */
async function expectNoFailure(
  scenario: Scenario,
  disturb: (world: PlanWorld, cut: Cut) => Promise<void>,
): Promise<void> {
  const failures: string[] = [];
  for (const cut of await cutsOf(scenario)) {
    const world = await openPlanWorld(scenario.situation);
    await disturb(world, cut);
    const cutAt = world.calls()[cut.call];
    // One that fails may be asked for once more, in vain.
    world.catalogue.refusals.length = 0;
    try {
      expect((await world.register(scenario.options)).excess).toEqual([]);
      await expectEnded(world, scenario);
    } catch (error) {
      failures.push(`${cut.how} ${cut.when} ${cut.call} ${cutAt}: ${error}`);
    }
    world.close();
  }
  expect(failures).toEqual([]);
}

describe.each(scenarios)('$title', (scenario) => {
  const { situation, options } = scenario;

  it('ends as wanted when nothing comes between', async () => {
    const world = await openPlanWorld(situation);
    const { excess } = await world.register(options);
    expect(excess).toEqual([]);
    await expectEnded(world, scenario);
    const { length } = world.catalogue.writes;
    await world.register(options);
    expect(world.catalogue.writes).toHaveLength(length);
    expect(new Set(world.catalogue.writes).size).toBe(length);
    world.close();
  });

  it('ends the same when it is cut anywhere and run again', async () => {
    await expectNoFailure(scenario, async (world, cut) => {
      await world.register(options, cut).catch(() => undefined);
      world.pass(dayUs / 24);
    });
  });

  it('ends the same when it is cut twice at the same place', async () => {
    await expectNoFailure(scenario, async (world, cut) => {
      await world.register(options, cut).catch(() => undefined);
      world.pass(minuteUs);
      await world.register(options, cut).catch(() => undefined);
      world.pass(minuteUs);
    });
  });

  it('bears a round of maintenance after a cut', async () => {
    await expectNoFailure(scenario, async (world, cut) => {
      await world.register(options, cut).catch(() => undefined);
      world.pass(dayUs / 24);
      await maintain({ inFile: null }, world.world());
    });
  });

  it('is finished by maintenance alone, once it was begun', async () => {
    if (options.prune || options.movedFrom !== undefined) return;
    for (const cut of await cutsOf(scenario)) {
      const world = await openPlanWorld(situation);
      await world.register(options, cut).catch(() => undefined);
      if (world.catalogue.writes.length > 0) {
        await maintain({ inFile: null }, world.world());
        world.catalogue.refusals.length = 0;
        await expectEnded(world, scenario);
      }
      world.close();
    }
  });
});
