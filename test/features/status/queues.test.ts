/** Alerts of the queues of pull subscriptions: unread entries and failures. */
import { describe, expect, it } from 'vitest';
import type { QueueState } from '../../../src/admin/pull-queue.ts';
import type { Check } from '../../../src/core/terms/evaluation.ts';
import { subscriptionChecks } from '../../../src/features/subscriptions/checks.ts';
import type { SubscriptionState } from '../../../src/features/subscriptions/state.ts';
import { queueState } from '../../admin/sample-queue.ts';
import { beginUs, dayUs, hourUs, minuteUs, view } from '../alerts/watch-context.ts';

const hour = (at: number) => beginUs + at * hourUs;

/** A queue that was read to its end at `beginUs`; nothing arrives. */
const read = (fields: Partial<QueueState> = {}) =>
  queueState({ emptiedAtUs: beginUs, readAtUs: beginUs, ...fields });

/** A failure since `beginUs`. */
const failing = { failure: 'No answer.', failingSinceUs: beginUs };

const checkOf = (kind: string) =>
  subscriptionChecks.find((one) => one.kind === kind) as Check<SubscriptionState>;

function check(queue: QueueState, nowUs: number, fields: Partial<SubscriptionState> = {}) {
  const subscription = view({ type: 'pull', queue, ...fields });
  return checkOf('queue').check(subscription, { nowUs, upSinceUs: 0, alert: undefined });
}

const severityOf = (...of: Parameters<typeof check>) => {
  const result = check(...of);
  return result === null || result === 'unchecked' ? result : result.level;
};

describe('the alert of a queue', () => {
  it.each([
    ['below 30 % of its length', { length: 29_999 }, null],
    ['at 30 % of its length', { length: 30_000 }, 'warning'],
    ['at 70 % of its length', { length: 70_000 }, 'critical'],
    ['at 30 % of a shorter one', { length: 30, lengthMax: 100 }, 'warning'],
    ['with entries of less than a day', { length: 5, oldestAtUs: beginUs + 1 }, null],
    ['with entries of a day', { length: 5, oldestAtUs: beginUs }, 'warning'],
    ['with entries of 54 hours', { length: 5, oldestAtUs: hour(-30) }, 'critical'],
  ])('%s is %j: %j', (_title, fields, expected) => {
    const readAtUs = beginUs + dayUs;
    expect(severityOf(read({ readAtUs, ...fields }), readAtUs)).toBe(expected);
  });

  it('is not raised by refused requests while the subscription is paused', () => {
    const state = read(failing);
    expect(severityOf(state, hour(60), { pausedSeenAtUs: beginUs })).toBeNull();
    expect(severityOf(state, hour(2))).toBe('warning');
  });

  it('is raised when requests fail for an hour, whatever the queue contains', () => {
    const unknown = { length: null, emptiedAtUs: null, readAtUs: null };
    const state = read({ ...unknown, ...failing });
    expect(check(state, beginUs + minuteUs)).toMatchObject({
      ...{ level: 'warning', raiseAfterUs: hourUs, sinceUs: beginUs },
      text: 'The queue of the subscription alps cannot be read.',
      evidence: [expect.stringMatching(/^Requests fail since .* UTC: No answer\.$/)],
      nextStep: expect.stringContaining('earshot doctor'),
    });
  });
});
