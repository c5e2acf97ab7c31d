/** The part `subscriptions` of the status, with queues of pull subscriptions. */
import { describe, expect, it } from 'vitest';
import { queueText } from '../../src/cli/status/check-subscriptions.ts';
import type { QueueState } from '../../src/domain/pull-queue.ts';
import type { SubscriptionStatus } from '../../src/domain/status.ts';
import { queueState } from '../domain/sample-queue.ts';
import { nowUs } from './fake-io.ts';
import { activeAlert, dayUs, evaluatedPart, hourUs, minuteUs, wellFacts } from './status-facts.ts';

/** A queue that was read a minute ago, without new entries since. */
const queue = (fields: Partial<QueueState> = {}) =>
  queueState({
    ...{ readAtUs: nowUs - minuteUs, emptiedAtUs: nowUs - minuteUs, entriesPerHour: 0 },
    ...fields,
  });

const unread = { length: null, readAtUs: null, emptiedAtUs: null, entriesPerHour: null };

/** A running subscription without a notification so far. */
const pulled = (fields: Partial<SubscriptionStatus> = {}): SubscriptionStatus => ({
  ...{ name: 'alps', state: 'running', pausedOnPurpose: false, lastDeliveryAtUs: null },
  ...{ pausesAtUs: null, cancelsAtUs: null },
  ...fields,
});

describe('the text of a queue', () => {
  it.each<[Partial<QueueState>, string]>([
    [{}, 'empty'],
    [unread, 'not read yet'],
    [{ length: 1, oldestAtUs: nowUs - minuteUs }, '1 entry, the oldest 1 min old'],
    [{ length: 1_240, oldestAtUs: nowUs - 3.5 * hourUs }, '1,240 entries, the oldest 3.5 h old'],
    [{ length: 5, oldestAtUs: nowUs - 2.5 * dayUs }, '5 entries, the oldest 2 days old'],
    [{ length: 5, emptiedAtUs: null }, '5 entries'],
    [
      { readAtUs: nowUs - dayUs, emptiedAtUs: nowUs - dayUs, entriesPerHour: 10 },
      '240 entries, the oldest 24 h old',
    ],
  ])('%j is "%s"', (fields, text) => {
    expect(queueText(queue(fields), nowUs)).toBe(`queue of alps: ${text}`);
  });
});

describe('the part "subscriptions"', () => {
  it('shows the queue of each pull subscription after the last notifications', async () => {
    const second = queue({ subscription: 'andes', length: 3, oldestAtUs: nowUs - hourUs });
    const found = await evaluatedPart('subscriptions', {
      subscriptions: [pulled({ lastDeliveryAtUs: nowUs - hourUs }), pulled({ name: 'andes' })],
      queues: [queue(), second],
    });
    expect(found).toMatchObject({ level: 'well', nextStep: null });
    expect(found?.text).toBe(
      '2 running, last notification: alps (60 min ago), andes (none yet); queue of alps: empty; queue of andes: 3 entries, the oldest 60 min old',
    );
  });

  it('shows a queue that was not read yet', async () => {
    const facts = { subscriptions: [pulled()], queues: [queue(unread)] };
    const found = await evaluatedPart('subscriptions', facts);
    expect(found?.text).toMatch(/alps \(none yet\); queue of alps: not read yet$/);
  });

  it('has no queue without a pull subscription', async () => {
    expect((await evaluatedPart('subscriptions'))?.text).not.toContain('queue');
  });

  it('warns of a queue that cannot be read, with the reason', async () => {
    const failing = { failure: 'Log in again.', failingSinceUs: nowUs - minuteUs };
    const facts = { subscriptions: [pulled()], queues: [queue(failing)] };
    expect(await evaluatedPart('subscriptions', facts)).toMatchObject({
      level: 'warning',
      text: 'The queue of alps cannot be read: Log in again.',
      nextStep: expect.stringContaining('`earshot doctor`'),
    });
  });

  it('expects no access to the queue of a subscription that is paused on purpose', async () => {
    const paused = { state: 'paused', pausedOnPurpose: true } as const;
    const queues = [queue({ failure: 'It is paused.' })];
    const found = await evaluatedPart('subscriptions', { subscriptions: [pulled(paused)], queues });
    expect(found?.level).toBe('well');
  });

  it('reports a stopped subscription before its queue, when no receiver runs', async () => {
    const facts = {
      receiver: null,
      subscriptions: [pulled({ state: 'paused' })],
      queues: [queue({ failure: 'It is paused.' })],
    };
    const found = await evaluatedPart('subscriptions', facts);
    expect(found?.text).toContain('not running, although they should be: alps');
  });

  it.each(['queue', 'queue-reader'] as const)('has the alert %s', async (kind) => {
    const facts = { subscriptions: [pulled()], alerts: [activeAlert(kind, 'alps', 'critical')] };
    expect(await evaluatedPart('subscriptions', facts)).toMatchObject({
      level: 'critical',
      nextStep: `What to do about ${kind}.`,
    });
  });
});

describe('other parts of a receiver that only reads queues', () => {
  it('need no certificate', async () => {
    const found = await evaluatedPart('certificate', { hasEndpoint: false, certificate: null });
    expect(found).toMatchObject({
      level: 'unused',
      text: 'not needed: all subscriptions are pull',
    });
  });

  it('tolerate that records are still fetched', async () => {
    const [index] = wellFacts().readers;
    if (index === undefined) throw new Error('There is no reader.');
    const lagging = { ...index, behind: 9, unreadSinceUs: nowUs - dayUs };
    const level = async (of: 'records' | 'index', days = 1) => {
      const reader = { ...lagging, of, name: 'any', unreadSinceUs: nowUs - days * dayUs };
      return (await evaluatedPart('readers', { readers: [reader] }))?.level;
    };
    expect([await level('records'), await level('index')]).toEqual(['well', 'warning']);
    expect(await level('records', 3)).toBe('warning');
  });
});
