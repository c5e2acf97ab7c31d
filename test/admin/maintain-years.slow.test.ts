/** Maintenance over years, and for random accounts, registrations and times. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { arbitraryCut, randomAccount } from './arbitrary-account.ts';
import { expectNoEventLost } from './expect-settled.ts';
import { dayUs, desiredState, otherFilter } from './samples.ts';
import { type AccountSetUp, type Cut, openAccount, openSetUp, round } from './set-up.ts';

const options = { desired: [desiredState()] };

/** Runs one round a day after `each`. Returns the actions and the new notes, by day. */
async function runDays(
  setUp: AccountSetUp,
  days: number,
  each: (day: number) => Promise<void> | void = () => undefined,
): Promise<string[]> {
  const diary: string[] = [];
  let knownCodes: string[] = [];
  for (let day = 1; day <= days; day += 1) {
    setUp.pass(dayUs);
    await each(day);
    const [result] = await round(setUp);
    const codes = result?.notes.map(({ code }) => code) ?? [];
    const fresh = codes.filter((code) => !knownCodes.includes(code));
    expect(result?.hasNewNotes).toBe(fresh.length > 0);
    knownCodes = codes;
    const words = [result?.did, ...fresh, result?.failure].filter(
      (word) => typeof word === 'string',
    );
    diary.push(...words.map((word) => `${day} ${word}`));
  }
  return diary;
}

/** Removes the days from a diary. */
const wordsOf = (diary: readonly string[]) => diary.map((entry) => entry.replace(/^\d+ /, ''));

async function openRegistered(showsLastNotification: boolean): Promise<AccountSetUp> {
  const setUp = await openSetUp({ showsLastNotification });
  await setUp.register(options);
  return setUp;
}

describe.each([
  ['shows the last notification', true],
  ['does not show the last notification', false],
])('a catalogue that %s', (_, showsLastNotification) => {
  it('is maintained through two years without notifications, with one resumption after each pause', async () => {
    const setUp = await openRegistered(showsLastNotification);
    const firstUs = setUp.nowUs();
    const diary = await runDays(setUp, 2 * 365 + 10);
    const year = [...[60, 120, 180, 240, 300, 360].map((day) => `${day} resume`), '365 recreate'];
    expect(wordsOf(diary)).toEqual([...wordsOf(year), ...wordsOf(year)]);
    // With one round a day, each action of the year shifts the later ones by up to a day.
    const dayOf = (entry: string | undefined) => Number(entry?.split(' ')[0]);
    const delays = [...year, ...year].map(
      (entry, index) => dayOf(diary[index]) - dayOf(entry) - (index < year.length ? 0 : 365),
    );
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...delays)).toBeLessThanOrEqual(14);
    const gaps = await setUp.administration.gaps();
    expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
    const versions = [desiredState()];
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: firstUs });
  });

  it('is distinguished from a person who pauses a subscription', async () => {
    const setUp = await openRegistered(showsLastNotification);
    const [ours] = setUp.catalogue.subscriptions();
    const diary = await runDays(setUp, 400, async (day) => {
      if (day === 100) await setUp.catalogue.client.edit(ours?.id ?? '', { status: 'paused' });
    });
    expect(wordsOf(diary)).toEqual(['resume', 'status-paused', 'recreate']);
  });
});

it('an adopted subscription keeps its dates, and a replacement restarts them', async () => {
  const setUp = await openRegistered(true);
  setUp.pass(50 * dayUs);
  await setUp.administration.commit({ removeRegistration: 'alps' });
  await setUp.register(options);
  expect(await runDays(setUp, 11)).toEqual(['10 resume']);
  setUp.pass(40 * dayUs);
  await setUp.register({ desired: [desiredState({ filter: otherFilter })] });
  expect(await runDays(setUp, 59)).toEqual([]);
  expect(wordsOf(await runDays(setUp, 2))).toEqual(['resume']);
});

const cut = arbitraryCut(20);
const anyRounds = fc.array(
  fc.record({ days: fc.integer({ min: 0, max: 200 }), cut: fc.option(cut, { freq: 2 }) }),
  { minLength: 1, maxLength: 4 },
);

/** Runs the rounds, and calls `checkRound` after each. */
async function runRounds(
  setUp: AccountSetUp,
  rounds: readonly { days: number; cut: Cut | null }[],
  checkRound: (before: ReturnType<AccountSetUp['catalogue']['subscriptions']>) => void,
): Promise<void> {
  for (const one of rounds) {
    // Avoids the exact time at which the service pauses or deletes.
    setUp.pass(one.days * dayUs + dayUs / 24);
    const before = setUp.catalogue.subscriptions();
    await round(setUp, null, one.cut).catch(() => undefined);
    checkRound(before);
  }
}

it('a round changes no unmanaged subscription, and deletes, pauses or edits only to finish a change', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), anyRounds, async ({ situation, unmanaged }, rounds) => {
      const registrations = situation.registrations.map((one) => ({ ...one, unfinished: false }));
      const setUp = await openAccount({ ...situation, registrations });
      const foreign = new Set(unmanaged.map(({ id }) => id));
      await runRounds(setUp, rounds, (before) => {
        const after = new Map(setUp.catalogue.subscriptions().map((one) => [one.id, one]));
        for (const one of before) {
          const now = after.get(one.id);
          if (foreign.has(one.id)) expect(now).toEqual(one);
          const { status, resumedAtUs: _, ...rest } = one;
          expect(now).toMatchObject(rest);
          expect([status, 'running']).toContain(now?.status);
        }
      });
      const { writes, refusals } = setUp.catalogue;
      // The next round may have to finish a change of an interrupted round.
      const harmless = /^(create|edit \S+ status=running$|edit made-)/;
      expect(writes.filter((write) => !harmless.test(write))).toEqual([]);
      expect(refusals).toEqual([]);
      setUp.close();
    }),
    { numRuns: 300 },
  );
});

it('several rounds at one time leave no action and no new note for the next round', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), anyRounds, async ({ situation }, rounds) => {
      const setUp = await openAccount(situation);
      await runRounds(setUp, rounds, () => undefined);
      // One change may free the capacity for another: a round for each name.
      for (const _ of situation.registrations) await round(setUp);
      await round(setUp);
      const { length } = setUp.catalogue.writes;
      for (const { did, hasNewNotes } of await round(setUp)) {
        expect({ did, hasNewNotes }).toEqual({ did: null, hasNewNotes: false });
      }
      expect(setUp.catalogue.writes).toHaveLength(length);
      setUp.close();
    }),
    { numRuns: 100 },
  );
});
