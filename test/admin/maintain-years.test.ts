/** Maintenance over years, and over any account, any registrations and any time. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { randomAccount } from './arbitrary-account.ts';
import { expectNoEventLost } from './expect-settled.ts';
import { dayUs, desiredState, otherFilter, startUs } from './samples.ts';
import {
  type AccountSetUp,
  type Cut,
  historyLines,
  openAccount,
  openSetUp,
  round,
} from './set-up.ts';

const options = { desired: [desiredState()] };

/** One round a day; `each` may do something before. Resolves with what was done or new, by day. */
async function live(
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

/** A diary without its days. */
const wordsOf = (diary: readonly string[]) => diary.map((entry) => entry.replace(/^\d+ /, ''));

async function openRegistered(showsLastNotification: boolean): Promise<AccountSetUp> {
  const setUp = await openSetUp({ showsLastNotification });
  await setUp.register(options);
  return setUp;
}

describe.each([
  ['shows when it notified last', true],
  ['shows no such date', false],
])('a catalogue that %s', (_, showsLastNotification) => {
  it('has nothing to undo while a notification comes now and then', async () => {
    const setUp = await openRegistered(showsLastNotification);
    const diary = await live(setUp, 800, async (day) => {
      if (day % 40 !== 0) return;
      setUp.catalogue.publish();
      const mark = { subscription: 'alps', username: 'catalogue', lastAtUs: setUp.nowUs() };
      await setUp.administration.markDeliveries([mark]);
    });
    expect(diary).toEqual([]);
    expect(await historyLines(setUp)).toEqual(['register created alps']);
  });

  it('in two silent years is told of ahead, and undone each time', async () => {
    const setUp = await openRegistered(showsLastNotification);
    const firstUs = setUp.nowUs();
    const diary = await live(setUp, 2 * 365 + 10);
    const year = [
      ...[60, 120, 180, 240, 300].flatMap((day) => [`${day - 14} pause-ahead`, `${day} resume`]),
      '335 deletion-ahead',
      '346 pause-ahead',
      '360 resume',
      '365 recreate',
    ];
    expect(wordsOf(diary)).toEqual([...wordsOf(year), ...wordsOf(year)]);
    // A day late for each time that it was undone in the year, as the rounds come once a day.
    const dayOf = (entry: string | undefined) => Number(entry?.split(' ')[0]);
    const lateBy = [...year, ...year].map(
      (entry, index) => dayOf(diary[index]) - dayOf(entry) - (index < year.length ? 0 : 365),
    );
    expect(Math.min(...lateBy)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...lateBy)).toBeLessThanOrEqual(14);
    const gaps = await setUp.administration.gaps();
    expect(gaps.every(({ toUs }) => toUs !== null)).toBe(true);
    const versions = [desiredState()];
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: firstUs });
  });

  it('is not taken for a person, nor a person for it', async () => {
    const setUp = await openRegistered(showsLastNotification);
    const [ours] = setUp.catalogue.subscriptions();
    const diary = await live(setUp, 400, async (day) => {
      if (day === 100) await setUp.catalogue.client.edit(ours?.id ?? '', { status: 'paused' });
    });
    expect(wordsOf(diary)).toEqual([
      'pause-ahead',
      'resume',
      'paused-by-person',
      'deletion-ahead',
      'gone',
    ]);
  });
});

describe('one that was adopted', () => {
  it('is judged by the life it had before, not by the day of its adoption', async () => {
    const setUp = await openAccount();
    await setUp.register(options);
    setUp.pass(50 * dayUs);
    await setUp.administration.commit({ removeRegistration: 'alps' });
    await setUp.register(options);
    expect(await live(setUp, 11)).toEqual(['1 pause-ahead', '10 resume']);
    setUp.close();
  });
});

describe('a replacement', () => {
  it('begins a new life', async () => {
    const setUp = await openRegistered(true);
    await live(setUp, 50);
    await setUp.register({ desired: [desiredState({ filter: otherFilter })] });
    expect((await live(setUp, 50))[0]).toBe('46 pause-ahead');
    expect(setUp.nowUs()).toBeGreaterThan(startUs);
  });
});

const cut = fc.record<Cut>({
  call: fc.nat(20),
  when: fc.constantFrom('before', 'after'),
  how: fc.constantFrom('killed', 'unavailable'),
});
const life = fc.array(
  fc.record({ days: fc.integer({ min: 0, max: 200 }), cut: fc.option(cut, { freq: 2 }) }),
  { minLength: 1, maxLength: 4 },
);

/** Lives through it, and calls `checkRound` after each round. */
async function liveThrough(
  setUp: AccountSetUp,
  rounds: readonly { days: number; cut: Cut | null }[],
  checkRound: (before: ReturnType<AccountSetUp['catalogue']['subscriptions']>) => void,
): Promise<void> {
  for (const one of rounds) {
    // Never to the very moment at which the service pauses or deletes.
    setUp.pass(one.days * dayUs + dayUs / 24);
    const before = setUp.catalogue.subscriptions();
    await round(setUp, null, one.cut).catch(() => undefined);
    checkRound(before);
  }
}

it('a round never touches what others made, nor deletes, pauses or edits what nobody began', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), life, async ({ situation, unmanaged }, rounds) => {
      const registrations = situation.registrations.map((one) => ({ ...one, unfinished: false }));
      const setUp = await openAccount({ ...situation, registrations });
      const foreign = new Set(unmanaged.map(({ id }) => id));
      await liveThrough(setUp, rounds, (before) => {
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
      // What a round has made itself, before it was cut, the next one may have to finish.
      const harmless = /^(create|edit \S+ status=running$|edit made-)/;
      expect(writes.filter((write) => !harmless.test(write))).toEqual([]);
      expect(refusals).toEqual([]);
      setUp.close();
    }),
    { numRuns: 300 },
  );
});

it('some rounds at one moment leave nothing to do and nothing to tell for the next', async () => {
  await fc.assert(
    fc.asyncProperty(randomAccount(), life, async ({ situation }, rounds) => {
      const setUp = await openAccount(situation);
      await liveThrough(setUp, rounds, () => undefined);
      // One may make the room that another needs: a round for each name.
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
