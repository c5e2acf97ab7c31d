import { describe, expect, it } from 'vitest';
import {
  type Administration,
  type AdministrationChange,
  type HistoryEntry,
  historyActions,
  historyActors,
  type NewGap,
  type Registration,
} from '../../src/admin/account.ts';
import { openLocalStore } from '../store/local-store.ts';
import { queueState } from './sample-queue.ts';

const atUs = 1_795_000_000_000_001;

/** A registration with a value in every field. */
const registration: Registration = {
  name: 'alps',
  type: 'push',
  events: ['created', 'deleted'],
  filter: "contains(Name,'Kärnten €') \n and 1 eq 1",
  status: 'running',
  subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
  unfinished: true,
  earlierIds: [],
  origin: 'flags',
  credentialsDigest: 'a digest',
  activityAtUs: atUs + 1,
  notifiedAtUs: atUs + 2,
  runningSeenAtUs: atUs + 3,
  pausedSeenAtUs: atUs + 4,
  changedByPerson: true,
  reported: ['status-paused'],
};

/** A registration with null in every field that may be null. */
const bare: Registration = {
  ...registration,
  name: 'a-bare-one',
  type: 'pull',
  events: ['modified'],
  filter: '',
  status: 'paused',
  subscriptionId: null,
  unfinished: false,
  earlierIds: [],
  origin: 'flags',
  credentialsDigest: null,
  runningSeenAtUs: null,
  pausedSeenAtUs: null,
  changedByPerson: false,
  reported: [],
};

const entry = (number: number, fields: Partial<HistoryEntry> = {}): HistoryEntry => ({
  atUs: atUs + number,
  subscription: 'alps',
  subscriptionId: `id-${number}`,
  action: 'noted',
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

describe('stored registrations', () => {
  it('keep every field, including null fields, over a restart', async () => {
    const { store, reopen } = await openLocalStore();
    await store.administration.commit({ save: registration });
    await store.administration.commit({ save: bare });
    expect(await store.administration.registrations()).toEqual([bare, registration]);
    const again = await reopen();
    expect(await again.administration.registrations()).toEqual([bare, registration]);
  });

  it('are replaced completely when saved again', async () => {
    const administration = await openAdministration();
    await administration.commit({ save: registration });
    await administration.commit({ save: { ...bare, name: 'alps' } });
    expect(await administration.registrations()).toEqual([{ ...bare, name: 'alps' }]);
  });

  it('can be removed without removing their history and gaps', async () => {
    const administration = await openAdministration();
    await administration.commit({ save: bare });
    await administration.commit({
      save: registration,
      history: [entry(1)],
      openGap: newGap(),
    });
    await administration.commit({ removeRegistration: 'alps' });
    await administration.commit({ removeRegistration: 'never-there' });
    expect(await administration.registrations()).toEqual([bare]);
    expect(await administration.history({ limit: 9 })).toHaveLength(1);
    expect(await administration.gaps()).toHaveLength(1);
  });

  it('are removed before others are saved, so that one change can rename a registration', async () => {
    const administration = await openAdministration();
    await administration.commit({ save: registration });
    await administration.commit({
      removeRegistration: 'alps',
      save: { ...registration, name: 'andes' },
    });
    await administration.commit({
      removeRegistration: 'andes',
      save: { ...registration, name: 'andes' },
    });
    expect((await administration.registrations()).map((one) => one.name)).toEqual(['andes']);
  });

  it('accept an empty change', async () => {
    const administration = await openAdministration();
    await administration.commit({});
    expect(await administration.registrations()).toEqual([]);
  });
});

describe('stored states of queues', () => {
  const other = { otherReader: { atUs: atUs + 5, entries: 7 } };
  const known = queueState({ failure: 'Größe, € and "quotes"', failingSinceUs: atUs, ...other });
  const unread = queueState({
    ...{ subscription: 'andes', length: null, emptiedAtUs: null, readAtUs: null },
    entriesPerHour: null,
  });

  it('keep every field, including null fields, over a restart, sorted by subscription', async () => {
    const { store, reopen } = await openLocalStore();
    expect(await store.administration.queues()).toEqual([]);
    await store.administration.saveQueues([unread, known]);
    expect(await store.administration.queues()).toEqual([known, unread]);
    expect(await (await reopen()).administration.queues()).toEqual([known, unread]);
  });

  it('are replaced all at once', async () => {
    const administration = await openAdministration();
    await administration.saveQueues([known, unread]);
    await administration.saveQueues([{ ...unread, length: 3 }]);
    expect(await administration.queues()).toEqual([{ ...unread, length: 3 }]);
    await administration.saveQueues([]);
    expect(await administration.queues()).toEqual([]);
  });

  it('stay as they were when two of them have the same subscription', async () => {
    const administration = await openAdministration();
    await administration.saveQueues([known]);
    await expect(administration.saveQueues([unread, unread])).rejects.toThrow();
    expect(await administration.queues()).toEqual([known]);
  });

  it('are independent of the registrations', async () => {
    const administration = await openAdministration();
    await administration.commit({ save: { ...registration, type: 'pull' } });
    await administration.saveQueues([known]);
    await administration.commit({ save: registration });
    expect(await administration.queues()).toEqual([known]);
    expect(await administration.registrations()).toEqual([registration]);
  });
});

describe('the stored account history', () => {
  it('keeps every kind of entry over a restart', async () => {
    const { store, reopen } = await openLocalStore();
    const entries = historyActions.map((action, i) =>
      entry(i, { action, subscriptionId: i % 2 ? null : `id-${i}` }),
    );
    entries.push(...historyActors.map((actor, i) => entry(100 + i, { actor })));
    await store.administration.commit({ history: entries });
    const again = await reopen();
    expect(await again.administration.history({ limit: 99 })).toEqual(entries.toReversed());
  });

  it('returns the newest entries first, of one subscription or all, up to the limit', async () => {
    const administration = await openAdministration();
    await administration.commit({ history: [entry(1), entry(2, { subscription: 'andes' })] });
    // A clock that was set back does not make an entry older.
    await administration.commit({ history: [entry(-5), entry(3)] });
    const listed = async (options: Parameters<Administration['history']>[0]) =>
      (await administration.history(options)).map(({ reason }) => reason);
    const [one, two, early, three] = ['Reason 1.', 'Reason 2.', 'Reason -5.', 'Reason 3.'];
    expect(await listed({ limit: 9 })).toEqual([three, early, two, one]);
    expect(await listed({ limit: 2 })).toEqual([three, early]);
    expect(await listed({ subscription: 'alps', limit: 2 })).toEqual([three, early]);
    expect(await listed({ subscription: 'andes', limit: 2 })).toEqual([two]);
    expect(await listed({ subscription: 'nobody', limit: 2 })).toEqual([]);
  });
});

describe('stored gaps', () => {
  it('keep every field and can be closed', async () => {
    const administration = await openAdministration();
    await administration.commit({ openGap: newGap() });
    const [gap] = await administration.gaps();
    expect(gap).toEqual({ ...newGap(), id: expect.any(Number), toUs: null });
    await administration.commit({ closeGaps: { subscription: 'alps', toUs: atUs + 7 } });
    expect(await administration.gaps()).toEqual([{ ...gap, toUs: atUs + 7 }]);
  });

  it('are not opened while another gap of that subscription is open', async () => {
    const administration = await openAdministration();
    await administration.commit({ openGap: newGap() });
    await administration.commit({ openGap: newGap({ fromUs: atUs + 1, filter: '' }) });
    await administration.commit({ openGap: newGap({ subscription: 'andes' }) });
    expect(await administration.gaps()).toMatchObject([
      newGap(),
      newGap({ subscription: 'andes' }),
    ]);
  });

  it('leave the previous, closed gap unchanged when a new one opens', async () => {
    const administration = await openAdministration();
    await administration.commit({ openGap: newGap() });
    await administration.commit({ closeGaps: { subscription: 'alps', toUs: atUs + 1 } });
    await administration.commit({ openGap: newGap({ fromUs: atUs + 5 }) });
    await administration.commit({ closeGaps: { subscription: 'alps', toUs: atUs + 9 } });
    await administration.commit({ closeGaps: { subscription: 'alps', toUs: atUs + 99 } });
    const gaps = await administration.gaps();
    expect(gaps.map(({ toUs }) => toUs)).toEqual([atUs + 1, atUs + 9]);
    expect(new Set(gaps.map(({ id }) => id)).size).toBe(2);
  });

  it('are opened before they are closed, so that one change can record a finished gap', async () => {
    const administration = await openAdministration();
    await administration.commit({
      closeGaps: { subscription: 'alps', toUs: atUs + 1 },
      openGap: newGap(),
    });
    const gaps = await administration.gaps();
    expect(gaps.map(({ fromUs, toUs }) => [fromUs, toUs])).toEqual([[newGap().fromUs, atUs + 1]]);
  });

  it("never end before they began, nor by the end of another subscription's gap", async () => {
    const administration = await openAdministration();
    await administration.commit({ openGap: newGap() });
    await administration.commit({ openGap: newGap({ subscription: 'andes' }) });
    await administration.commit({ closeGaps: { subscription: 'alps', toUs: atUs - 50 } });
    const ends = (await administration.gaps()).map((gap) => [gap.subscription, gap.toUs]);
    expect(ends).toEqual([
      ['alps', atUs],
      ['andes', null],
    ]);
  });

  it('are returned oldest first', async () => {
    const administration = await openAdministration();
    for (const [subscription, fromUs] of [
      ['b', 20],
      ['a', 30],
      ['c', 10],
    ] as const) {
      await administration.commit({ openGap: newGap({ subscription, fromUs }) });
    }
    expect((await administration.gaps()).map(({ fromUs }) => fromUs)).toEqual([10, 20, 30]);
  });
});

describe('changes and marks of the account', () => {
  it('store nothing of a change when one part of it fails', async () => {
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
    const unkeepable: AdministrationChange[] = [
      { ...whole, history: [entry(1), entry(Number.NaN)] },
      { ...whole, openGap: newGap({ fromUs: Number.NaN }) },
    ];
    for (const change of unkeepable) await expect(administration.commit(change)).rejects.toThrow();
    const again = (await reopen()).administration;
    expect(await again.registrations()).toEqual([bare]);
    expect(await again.history({ limit: 9 })).toEqual([]);
    expect(await again.gaps()).toMatchObject([{ subscription: 'lasting', toUs: null }]);
    await again.commit(whole);
    expect(await again.registrations()).toEqual([registration]);
  });

  it('keep the latest time of each mark over a restart', async () => {
    const { store, reopen } = await openLocalStore();
    const mark = (subscription: string | null, username: string, lastAtUs: number) => ({
      subscription,
      username,
      lastAtUs,
    });
    await store.administration.markDeliveries([mark('alps', 'old', 5), mark(null, 'old', 6)]);
    await store.administration.markDeliveries([]);
    await store.administration.markDeliveries([
      mark('alps', 'new', 8),
      mark('alps', 'old', 3),
      mark(null, 'old', 9),
      mark(null, 'old', 7),
    ]);
    const kept = await (await reopen()).administration.deliveryMarks();
    expect(new Set(kept)).toEqual(
      new Set([mark('alps', 'old', 5), mark('alps', 'new', 8), mark(null, 'old', 9)]),
    );
  });
});
