/** Alerts of the queues of pull subscriptions: unread entries, failures, and other readers. */
import { describe, expect, it } from 'vitest';
import type { Registration } from '../../src/domain/account.ts';
import type { QueueState } from '../../src/domain/pull-queue.ts';
import { queueState } from '../domain/sample-queue.ts';
import {
  beginUs,
  dayUs,
  hourUs,
  minuteUs,
  openContext,
  registration,
  type TestContext,
} from './watch-context.ts';

const pull = (fields: Partial<Registration> = {}) => registration({ type: 'pull', ...fields });

const hour = (at: number) => beginUs + at * hourUs;

/** A queue that was read to its end at `beginUs`; nothing arrives. */
const read = (fields: Partial<QueueState> = {}) =>
  queueState({ emptiedAtUs: beginUs, readAtUs: beginUs, entriesPerHour: 0, ...fields });

/** Opens a watchdog with a pull subscription; `checkWith` stores the state of its queue first. */
async function openPull(registrations = [pull()]) {
  const context = await openContext({}, registrations);
  const checkWith = async (atUs: number, ...states: QueueState[]) => {
    await context.store.administration.saveQueues(states);
    return severitiesOf(await context.checkAt(atUs));
  };
  return { context, checkWith };
}

const severitiesOf = (alerts: Awaited<ReturnType<TestContext['check']>>) =>
  alerts.map(({ kind, subject, severity }) => `${severity} ${kind} ${subject}`);

const [warning, critical] = ['warning queue alps', 'critical queue alps'];
const otherReaderAlert = 'critical queue-reader alps';

/** A failure since `beginUs`. */
const failing = { failure: 'No answer.', failingSinceUs: beginUs };

describe('the alert of a queue', () => {
  it.each([
    ['below 30 % of its length', { length: 29_999 }, []],
    ['at 30 % of its length', { length: 30_000 }, [warning]],
    ['below 70 % of its length', { length: 69_999 }, [warning]],
    ['at 70 % of its length', { length: 70_000 }, [critical]],
    ['at 30 % of a shorter one', { length: 30, lengthMax: 100 }, [warning]],
    ['with entries of less than a day', { length: 5, oldestAtUs: beginUs + 1 }, []],
    ['with entries of a day', { length: 5, oldestAtUs: beginUs }, [warning]],
    ['with entries of 53 hours', { length: 5, oldestAtUs: hour(-29) }, [warning]],
    ['with entries of 54 hours', { length: 5, oldestAtUs: hour(-30) }, [critical]],
    ['with entries of unknown age', { length: 5, oldestAtUs: null, emptiedAtUs: null }, []],
  ])('%s is %j: %j', async (_title, fields, expected) => {
    const { checkWith } = await openPull();
    const readAtUs = beginUs + dayUs;
    expect(await checkWith(readAtUs, read({ readAtUs, ...fields }))).toEqual(expected);
  });

  it('counts entries that arrived since the last answer, at the usual rate', async () => {
    const { checkWith } = await openPull();
    const state = read({ length: 29_000, oldestAtUs: beginUs, entriesPerHour: 100 });
    expect(await checkWith(hour(9), state)).toEqual([]);
    expect(await checkWith(hour(10), state)).toEqual([warning]);
  });

  it('is not raised by refused requests while the subscription is paused', async () => {
    const state = read({ ...failing, entriesPerHour: 100 });
    const { checkWith } = await openPull([pull({ pausedSeenAtUs: beginUs })]);
    // The pause has an alert of its own. Nothing arrives meanwhile.
    for (const hours of [2, 60]) {
      const alerts = await checkWith(hour(hours), state);
      expect(alerts.map((alert) => alert.split(' ')[1])).toEqual(['not-running']);
    }
    const running = await openPull();
    expect(await running.checkWith(hour(2), state)).toEqual([warning]);
  });

  it('is raised when requests fail for an hour, whatever the queue contains', async () => {
    const { context, checkWith } = await openPull();
    const unknown = { length: null, emptiedAtUs: null, readAtUs: null, entriesPerHour: null };
    const state = read({ ...unknown, ...failing });
    expect(await checkWith(beginUs + 59 * minuteUs, state)).toEqual([]);
    expect(await checkWith(beginUs + 60 * minuteUs, state)).toEqual([warning]);
    const [alert] = await context.activeAlerts();
    expect(alert?.cause).toBe('The queue of the subscription alps cannot be read.');
    expect(alert?.evidence).toEqual([
      expect.stringMatching(/^Requests fail since .* UTC: No answer\.$/),
    ]);
    expect(alert?.nextStep).toContain('earshot doctor');
  });

  it.each([
    [2_500, 'in 36 hours', []],
    [2_501, 'in less than 36 hours', [warning]],
    [7_500, 'in 12 hours', [warning]],
    [7_501, 'in less than 12 hours', [critical]],
  ])(
    'with %i entries per hour, so that it is full %s, is %j only while requests fail',
    async (entriesPerHour, _title, expected) => {
      const { checkWith } = await openPull();
      const state = read({ length: 10_000, oldestAtUs: beginUs, entriesPerHour });
      expect(await checkWith(beginUs, state)).toEqual([]);
      expect(await checkWith(beginUs, { ...state, ...failing })).toEqual(expected);
    },
  );

  it('is resolved when the subscription becomes push, or is removed', async () => {
    const others = ['andes', 'urals'].map((name) => pull({ name, subscriptionId: name }));
    const { context, checkWith } = await openPull(others);
    const old = (subscription: string) => read({ subscription, length: 10, oldestAtUs: beginUs });
    const states = [old('andes'), old('urals')];
    expect(await checkWith(hour(24), ...states)).toHaveLength(2);
    const { administration } = context.store;
    await administration.commit({ save: registration({ name: 'andes' }) });
    await administration.commit({ removeRegistration: 'urals' });
    expect(await checkWith(hour(25), ...states)).toEqual([]);
  });

  it('is not raised for a push subscription with the state of an earlier queue', async () => {
    const { checkWith } = await openPull([registration()]);
    expect(await checkWith(hour(60), read({ length: 99_999, ...failing }))).toEqual([]);
  });
});

describe('the alert of another reader', () => {
  const otherAt = (at: number, fields: Partial<QueueState> = {}) =>
    read({ readAtUs: hour(at), otherReader: { atUs: hour(at), entries: 1_234 }, ...fields });

  it('is raised when another program acknowledges entries', async () => {
    const { context, checkWith } = await openPull();
    expect(await checkWith(hour(1), otherAt(1))).toEqual([otherReaderAlert]);
    const [alert] = await context.activeAlerts();
    expect(alert?.cause).toContain('leave the queue of the subscription alps without earshot');
    expect(alert?.evidence[0]).toMatch(/UTC, 1,234 entries left the queue/);
  });

  it('stays for a day after the last time, and is then resolved', async () => {
    const { checkWith } = await openPull();
    const state = otherAt(1, { entriesPerHour: 0.001 });
    await checkWith(hour(1), state);
    expect(await checkWith(hour(25), state)).toEqual([otherReaderAlert]);
    expect(await checkWith(hour(25) + 1, state)).toEqual([]);
  });

  it('stays for a day after a restart, which clears what was noticed', async () => {
    const { context, checkWith } = await openPull();
    await checkWith(hour(1), otherAt(1));
    await context.restart();
    const cleared = read({ readAtUs: hour(2), entriesPerHour: 0.001 });
    expect(await checkWith(hour(2), cleared)).toEqual([otherReaderAlert]);
    expect(await checkWith(hour(25), cleared)).toEqual([otherReaderAlert]);
    expect(await checkWith(hour(26), cleared)).toEqual([]);
  });
});
