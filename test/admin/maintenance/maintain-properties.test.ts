/** What holds for rounds of maintenance over any account, any registrations and any time. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { randomAccount } from '../plan/arbitrary-account.ts';
import type { Cut } from '../plan/cut-calls.ts';
import { dayUs } from '../plan/plan-samples.ts';
import { openPlanWorld, type PlanWorld } from '../plan/plan-world.ts';
import { round } from './maintenance.ts';

const cut = fc.record<Cut>({
  call: fc.nat(20),
  when: fc.constantFrom('before', 'after'),
  how: fc.constantFrom('killed', 'unavailable'),
});
const life = fc.array(
  fc.record({ days: fc.integer({ min: 0, max: 200 }), cut: fc.option(cut, { freq: 2 }) }),
  { minLength: 1, maxLength: 4 },
);

/** Lives through it, and calls `look` around each round. */
async function live(
  world: PlanWorld,
  rounds: readonly { days: number; cut: Cut | null }[],
  look: (before: ReturnType<PlanWorld['catalogue']['held']>) => void,
): Promise<void> {
  for (const one of rounds) {
    // Never to the very moment at which the service pauses or deletes.
    world.pass(one.days * dayUs + dayUs / 24);
    const before = world.catalogue.held();
    await round(world, null, one.cut).catch(() => undefined);
    look(before);
  }
}

it('a round never touches what others made, nor deletes, pauses or edits what nobody began', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), life, async ({ situation, strangers }, rounds) => {
      const registrations = situation.registrations.map((one) => ({ ...one, unfinished: false }));
      const world = await openPlanWorld({ ...situation, registrations });
      const foreign = new Set(strangers.map(({ id }) => id));
      await live(world, rounds, (before) => {
        const after = new Map(world.catalogue.held().map((one) => [one.id, one]));
        for (const one of before) {
          const now = after.get(one.id);
          if (foreign.has(one.id)) expect(now).toEqual(one);
          const { status, resumedAtUs: _, ...rest } = one;
          expect(now).toMatchObject(rest);
          expect([status, 'running']).toContain(now?.status);
        }
      });
      const { writes, refusals } = world.catalogue;
      // What a round has made itself, before it was cut, the next one may have to finish.
      const harmless = /^(create|edit \S+ status=running$|edit made-)/;
      expect(writes.filter((write) => !harmless.test(write))).toEqual([]);
      expect(refusals).toEqual([]);
      world.close();
    }),
    { numRuns: 300 },
  );
});

it('some rounds at one moment leave nothing to do and nothing to tell for the next', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), life, async ({ situation }, rounds) => {
      const world = await openPlanWorld(situation);
      await live(world, rounds, () => undefined);
      // One may make the room that another needs: a round for each name.
      for (const _ of situation.registrations) await round(world);
      await round(world);
      const { length } = world.catalogue.writes;
      for (const { did, news } of await round(world)) {
        expect({ did, news }).toEqual({ did: null, news: false });
      }
      expect(world.catalogue.writes).toHaveLength(length);
      world.close();
    }),
    { numRuns: 100 },
  );
});
