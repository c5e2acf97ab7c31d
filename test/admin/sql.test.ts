import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type {
  Administration,
  AdministrationChange,
  HistoryEntry,
  NewGap,
  Registration,
} from '../../src/admin/account.ts';
import { registeredSubscriptions } from '../../src/admin/sql.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openLocalStore } from '../store/local-store.ts';
import { queueState } from './sample-queue.ts';
import { registrationOf } from './samples.ts';

const atUs = 1_795_000_000_000_001;

/** A registration with a value in every field. */
const registration = registrationOf({
  ...{ events: ['created', 'deleted'], filter: "contains(Name,'Kärnten €') \n and 1 eq 1" },
  ...{
    unfinished: true,
    credentialsDigest: 'a digest',
    pausedSeenAtUs: atUs,
    activityAtUs: atUs + 1,
  },
  changedByPerson: true,
});

/** A registration with null in every field that may be null. */
const bare: Registration = {
  ...registration,
  ...{ name: 'a-bare-one', type: 'pull', events: ['modified'], filter: '', status: 'paused' },
  ...{ subscriptionId: null, unfinished: false, credentialsDigest: null, runningSeenAtUs: null },
  ...{ pausedSeenAtUs: null, changedByPerson: false },
};

const entry = (number: number, fields: Partial<HistoryEntry> = {}): HistoryEntry => ({
  atUs: atUs + number,
  subscription: 'alps',
  subscriptionId: `id-${number}`,
  action: 'paused',
  actor: 'maintain',
  reason: `Reason ${number}.`,
  ...fields,
});

const newGap = (fields: Partial<NewGap> = {}): NewGap => ({
  subscription: 'alps',
  events: ['created', 'modified'],
  filter: "startswith(Name,'S2')",
  fromUs: atUs,
  reason: 'It had to be deleted before its successor could run.',
  ...fields,
});

const openAdministration = async () => (await openLocalStore()).store.administration;

it('stored registrations keep every field over a restart, and are replaced completely when saved again', async () => {
  const { store, reopen } = await openLocalStore();
  for (const save of [registration, bare]) await store.administration.commit({ save });
  const { administration } = await reopen();
  expect(await administration.registrations()).toEqual([bare, registration]);
  await administration.commit({ save: { ...bare, name: 'alps' } });
  expect(await administration.registrations()).toEqual([bare, { ...bare, name: 'alps' }]);
});

it('stored registrations can be removed or renamed, and keep their history and gaps', async () => {
  const administration = await openAdministration();
  await administration.commit({ save: registration, history: [entry(1)], openGap: newGap() });
  const andes = { ...registration, name: 'andes' };
  await administration.commit({ removeRegistration: 'alps', save: andes });
  expect(await administration.registrations()).toEqual([andes]);
  await administration.commit({ removeRegistration: 'andes' });
  expect(await administration.registrations()).toEqual([]);
  expect(await administration.history({ limit: 9 })).toHaveLength(1);
  expect(await administration.gaps()).toHaveLength(1);
});

it('stored states of queues keep every field over a restart, and are replaced all at once', async () => {
  const known = queueState({
    ...{ failure: 'Größe, € and "quotes"', failingSinceUs: atUs },
  });
  const unread = queueState({
    ...{ subscription: 'andes', length: null, emptiedAtUs: null, readAtUs: null },
  });
  const { store, reopen } = await openLocalStore();
  await store.administration.saveQueues([unread, known]);
  const { administration } = await reopen();
  expect(await administration.queues()).toEqual([known, unread]);
  await administration.saveQueues([unread]);
  await expect(administration.saveQueues([known, known])).rejects.toThrow();
  expect(await administration.queues()).toEqual([unread]);
});

it('the stored account history returns the newest entries first, of one subscription or all, up to the limit', async () => {
  const administration = await openAdministration();
  const first = [entry(1, { subscriptionId: null }), entry(2, { subscription: 'andes' })];
  await administration.commit({ history: first });
  // A clock that was set back does not make an entry older.
  const second = [entry(-5), entry(3)];
  await administration.commit({ history: second });
  expect(await administration.history({ limit: 9 })).toEqual([...first, ...second].toReversed());
  const listed = async (options: Parameters<Administration['history']>[0]) =>
    (await administration.history(options)).map(({ reason }) => /-?\d/.exec(reason)?.[0]).join();
  expect(await listed({ subscription: 'alps', limit: 2 })).toBe('3,-5');
  expect(await listed({ subscription: 'andes', limit: 2 })).toBe('2');
  expect(await listed({ subscription: 'nobody', limit: 2 })).toBe('');
});

it.each([
  ['are not opened while another is open', 'open 0, open 1', '0-'],
  ['end once', 'open 0, close 1, close 99', '0-1'],
  ['may begin and end in one change', 'both 1', '1-1'],
  ['never end before they begin', 'open 0, close -50', '0-0'],
])('stored gaps %s', async (_, steps, gaps) => {
  const administration = await openAdministration();
  await administration.commit({ openGap: newGap({ subscription: 'other' }) });
  for (const [step, after] of steps.split(', ').map((text) => text.split(' '))) {
    const us = atUs + Number(after);
    await administration.commit({
      ...(step !== 'close' && { openGap: newGap({ fromUs: us }) }),
      ...(step !== 'open' && { closeGaps: { subscription: 'alps', toUs: us } }),
    });
  }
  const since = (us: number | null) => (us === null ? '' : us - atUs);
  const shown = (await administration.gaps()).map(
    ({ subscription, fromUs, toUs }) => `${subscription} ${since(fromUs)}-${since(toUs)}`,
  );
  const own = gaps.split(' ').map((gap) => `alps ${gap}`);
  expect(shown.toSorted()).toEqual([...own, 'other 0-']);
});

it('a change stores nothing when one part of it fails', async () => {
  const { store, reopen } = await openLocalStore();
  const { administration } = store;
  await administration.commit({ save: bare, openGap: newGap({ subscription: 'lasting' }) });
  const whole: AdministrationChange = {
    save: registration,
    removeRegistration: bare.name,
    history: [entry(1), entry(2)],
    openGap: newGap(),
    closeGaps: { subscription: 'lasting', toUs: atUs },
  };
  const invalid = { ...whole, openGap: newGap({ fromUs: Number.NaN }) };
  await expect(administration.commit(invalid)).rejects.toThrow();
  const again = (await reopen()).administration;
  expect(await again.registrations()).toEqual([bare]);
  expect(await again.history({ limit: 9 })).toEqual([]);
  expect(await again.gaps()).toMatchObject([{ subscription: 'lasting', toUs: null }]);
  await again.commit(whole);
  expect(await again.registrations()).toEqual([registration]);
});

it('the registered subscriptions of a folder are those of its database; a broken one has none', async () => {
  const { store, dataDir } = await openLocalStore();
  await store.administration.commit({ save: registration });
  expect(registeredSubscriptions(dataDir)).toEqual([registration]);
  const folder = temporaryDirectory();
  expect(registeredSubscriptions(folder)).toEqual([]);
  writeFileSync(join(folder, databaseFileName), 'no database', { mode: 0o600 });
  expect(registeredSubscriptions(folder)).toEqual([]);
});

it('marks of deliveries keep the latest time over a restart', async () => {
  const { store, reopen } = await openLocalStore();
  const mark = (subscription: string | null, username: string, lastAtUs: number) => ({
    ...{ subscription, username, lastAtUs },
  });
  const save = store.administration.markDeliveries;
  await save([mark('alps', 'old', 5), mark(null, 'old', 6)]);
  await save([mark('alps', 'new', 8), mark('alps', 'old', 3), mark(null, 'old', 9)]);
  await save([mark(null, 'old', 7)]);
  const kept = await (await reopen()).administration.deliveryMarks();
  expect(new Set(kept)).toEqual(
    new Set([mark('alps', 'old', 5), mark('alps', 'new', 8), mark(null, 'old', 9)]),
  );
});
