import { describe, expect, it } from 'vitest';
import { notificationDelayUs } from '../../../src/core/terms/subscription.ts';
import type { HourCoverage } from '../../../src/features/coverage/completeness.ts';
import { registrationOf } from '../../admin/samples.ts';
import { atUs, hour, missing, push, pushed, subscription } from '../../store/catalogue-events.ts';
import { openLocalStore } from '../../store/local-store.ts';

const compared = (fields: Partial<HourCoverage> = {}) => ({
  subscription,
  event: 'created' as const,
  hourUs: atUs,
  expected: 10,
  pushed: 4,
  late: 3,
  recovered: 2,
  missing: 1,
  comparedAtUs: atUs + 9 * hour,
  ...fields,
});
const always = { sinceUs: 0, untilUs: atUs + 999 * hour };

it('stored coverage keeps every field over a restart, is replaced when an hour is compared again, and is sorted', async () => {
  const { store, reopen } = await openLocalStore();
  await store.completeness.saveCoverage([
    compared({ hourUs: atUs + 2 * hour }),
    compared({ subscription: 'andes' }),
    compared({ event: 'deleted' }),
    compared({ hourUs: atUs + hour }),
    compared(),
  ]);
  const again = compared({ expected: 11, pushed: 11, late: 0, recovered: 0, missing: 0 });
  await store.completeness.saveCoverage([again]);
  const { completeness } = await reopen();
  const mine = [
    ...[again, compared({ hourUs: atUs + hour }), compared({ hourUs: atUs + 2 * hour })],
    compared({ event: 'deleted' }),
  ];
  const listed = (options: object) => completeness.coverage({ ...always, ...options });
  expect(await listed({})).toEqual([...mine, compared({ subscription: 'andes' })]);
  expect(await listed({ subscription })).toEqual(mine);
  expect(await listed({ subscription: 'nobody' })).toEqual([]);
  const window = { sinceUs: atUs + hour, untilUs: atUs + 2 * hour };
  expect(await listed(window)).toEqual([mine[1]]);
});

it('stored coverage is saved for all hours or none', async () => {
  const { completeness } = (await openLocalStore()).store;
  const broken = [compared(), compared({ hourUs: Number.NaN })];
  await expect(completeness.saveCoverage(broken)).rejects.toMatchObject({ code: 'internal' });
  expect(await completeness.coverage(always)).toEqual([]);
});

it('stored uptimes extend their end forwards only, and are returned by their end, oldest first, without overlaps', async () => {
  const { store, reopen } = await openLocalStore();
  const [first, second, third] = [
    [10, 30],
    [40, 65],
    [70, 70],
  ];
  // 70 to 60: with a clock that was set back meanwhile.
  for (const times of ['70 60', '10 10', '10 30', '10 20', '40 60', '45 50', '60 65']) {
    const [fromUs = 0, toUs = 0] = times.split(' ').map(Number);
    await store.completeness.recordUptime({ fromUs, toUs });
  }
  const { completeness } = await reopen();
  const listed = async (sinceUs: number) =>
    (await completeness.uptimes(sinceUs)).map(({ fromUs, toUs }) => [fromUs, toUs]);
  expect(await listed(29)).toEqual([first, second, third]);
  expect(await listed(30)).toEqual([second, third]);
  expect(await listed(70)).toEqual([]);
});

it('the arrival counts group all notifications, and recovered ones only when they were recovered', async () => {
  const { completeness, accept } = (await openLocalStore()).store;
  await completeness.recover({ events: [missing(8)], knownUpTo: 0, atUs: atUs + 5 });
  await accept(push(pushed(1), { receivedAtUs: atUs + 6, subscription }));
  await accept(push(pushed(8), { receivedAtUs: atUs + hour, subscription }));
  expect(await completeness.stored({ sinceUs: atUs, untilUs: atUs + 2 * hour })).toEqual([
    { subscription, hourUs: atUs, notifications: 2 },
  ]);
});

const registration = registrationOf({
  ...{ name: subscription, events: ['created', 'deleted'], filter: "startswith(Name,'S2')" },
  ...{ activityAtUs: atUs, notifiedAtUs: atUs, runningSeenAtUs: null },
});

const replaced = (time: number) => ({
  atUs: time,
  subscription,
  subscriptionId: null,
  action: 'replaced' as const,
  actor: 'register' as const,
  reason: 'other filter',
});

const { events, filter } = registration;
/** Events published shortly before the registration are pushed after it. */
const beganUs = atUs - notificationDelayUs;
const first = { subscription, fromUs: beganUs, events, filter };

describe('stored subscription definitions', () => {
  it('begin when a registration asks for something else, and only then', async () => {
    const { store, reopen } = await openLocalStore();
    const { administration } = store;
    const save = { ...registration, filter: 'true' };
    await administration.commit({ save: registration });
    const same = { ...registration, activityAtUs: atUs + 5, status: 'paused' as const };
    await administration.commit({ save: { ...same, events: ['deleted', 'created'] } });
    await administration.commit({ save, history: [replaced(atUs + 10), replaced(atUs + 9)] });
    await administration.commit({ save, history: [replaced(atUs + 20)] });
    const modified = { ...save, events: ['modified'] as const, activityAtUs: atUs + 30 };
    await administration.commit({ save: modified });
    const { completeness } = await reopen();
    expect(await completeness.definitions()).toEqual([
      first,
      { subscription, fromUs: atUs + 10, events, filter: 'true' },
      { subscription, fromUs: atUs + 30, events: ['modified'], filter: 'true' },
    ]);
  });

  it('begin only after the change in the catalogue is finished', async () => {
    const { administration, completeness } = (await openLocalStore()).store;
    await administration.commit({ save: registration });
    const changed = { ...registration, filter: 'true' };
    await administration.commit({ save: { ...changed, unfinished: true } });
    expect(await completeness.definitions()).toEqual([first]);
    await administration.commit({ save: changed, history: [replaced(atUs + 40)] });
    expect(await completeness.definitions()).toMatchObject([first, { fromUs: atUs + 40 }]);
  });

  it('end when the registration is removed, unless it is saved under the same name', async () => {
    const { administration, completeness } = (await openLocalStore()).store;
    await administration.commit({ save: registration });
    await administration.commit({ removeRegistration: subscription, save: registration });
    await administration.commit({ removeRegistration: 'never-there', history: [replaced(atUs)] });
    expect(await completeness.definitions()).toEqual([first]);
    const closeGaps = { subscription, toUs: atUs + 50 };
    const lateUs = atUs + 60 + notificationDelayUs;
    const andes = { ...registration, name: 'andes', activityAtUs: lateUs };
    await administration.commit({ removeRegistration: subscription, save: andes, closeGaps });
    await administration.commit({
      removeRegistration: subscription,
      history: [replaced(atUs + 70)],
    });
    await administration.commit({ removeRegistration: 'andes' });
    const over = { events: [], filter: '' };
    expect(await completeness.definitions()).toEqual([
      first,
      { ...over, subscription, fromUs: atUs + 50 },
      { ...first, subscription: 'andes', fromUs: atUs + 60 },
      { ...over, subscription: 'andes', fromUs: lateUs },
    ]);
    const againUs = atUs + 70 + 2 * notificationDelayUs;
    await administration.commit({ save: registration, history: [replaced(againUs)] });
    const definitions = await completeness.definitions();
    expect(definitions).toHaveLength(5);
    expect(definitions.at(-1)).toEqual({ ...first, fromUs: againUs - notificationDelayUs });
  });

  it('never begin before their predecessor, even if the clock is set back', async () => {
    const { administration, completeness } = (await openLocalStore()).store;
    await administration.commit({ save: registration });
    const save = { ...registration, filter: 'true' };
    await administration.commit({ save, history: [replaced(beganUs - 99)] });
    expect(await completeness.definitions()).toEqual([first, { ...first, filter: 'true' }]);
  });
});
