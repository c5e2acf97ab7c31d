/** The facts of a healthy receiver; tests change one at a time. */

import type { Registration } from '../../../src/admin/account.ts';
import type { StatusFacts } from '../../../src/core/status/status.ts';
import { dayUs, hourUs, minuteUs } from '../../../src/core/terms/dates.ts';
import type { Alert } from '../../../src/core/terms/evaluation.ts';
import type { SubscriptionState } from '../../../src/features/subscriptions/state.ts';
import { nowUs } from '../../helpers/fake-io.ts';
import { view } from '../alerts/watch-context.ts';

export { dayUs, hourUs, minuteUs };

const gibibyte = 2 ** 30;

export type Facts = { -readonly [Field in keyof StatusFacts]: StatusFacts[Field] };

/** A running subscription that was active today. */
export function subscription(
  name: string,
  fields: Partial<SubscriptionState> = {},
  changes: Partial<Registration> = {},
): SubscriptionState {
  const activity = { activityAtUs: nowUs, notifiedAtUs: nowUs };
  return view({ knownSinceUs: nowUs - dayUs, ...fields }, { name, ...activity, ...changes });
}

/** Two subscriptions, a managed certificate, a sink, summaries, backups. */
export function wellFacts(changes: Partial<Facts> = {}): StatusFacts {
  return {
    ...{ atUs: nowUs, version: '1.2.3', failures: [], alerts: [], indexBytes: 1.1 * gibibyte },
    ...{
      configFile: { fault: null, modifiedAtUs: null },
      receivers: null,
      hasEndpoint: true,
      behindProxy: false,
    },
    receiver: {
      ...{ startedAtUs: nowUs - 12 * dayUs, pid: 4711, refusing: null },
      queue: { bytes: 0, bytesMax: 1 },
    },
    log: {
      ...{ usedBytes: 4.2 * gibibyte, freeBytes: 0, walBytes: 4_000_000, firstPosition: 1 },
      ...{ lastPosition: 6_204_332, firstReceivedAtUs: nowUs - 400 * dayUs, quarantined: 0 },
      ...{ lastReceivedAtUs: nowUs - 2 * minuteUs, pruned: null },
    },
    subscriptions: [
      subscription('alps', { lastDeliveryAtUs: nowUs - 2 * minuteUs }),
      subscription('sea-ice', { lastDeliveryAtUs: nowUs - 3 * hourUs }),
    ],
    certificate: {
      ...{ notAfterUs: nowUs + 61 * dayUs, lifetimeUs: 90 * dayUs, lastFailure: null },
      ...{ lastAttemptAtUs: nowUs - 29 * dayUs, lastSuccessAtUs: nowUs - 29 * dayUs },
    },
    readers: [
      ['product index', 'products', 15 * minuteUs] as const,
      ['sink archive', 'sinks', null] as const,
      ['summaries', 'summaries', null] as const,
    ].map(([name, of, lagMaxUs]) => ({
      ...{ name, of, lagMaxUs, position: 6_204_332, behind: 0, unreadSinceUs: null },
    })),
    summaries: {
      ...{ mode: 'each', waiting: 3, dueAtUs: nowUs + hourUs },
      ...{ requests: 1_204, tokens: 1_530_020, refusedAnswer: null },
    },
    sinks: [
      {
        ...{ name: 'archive', isSetUp: true, waiting: 0, dead: 0, fault: null, lastError: null },
        deadError: null,
        ...{ oldestWaitingAtUs: null, target: 'command' },
        ...{ failingSinceUs: null, lastDeliveredAtUs: null, position: 6_204_332, behind: 0 },
        ...{ failed: 0, isReplaying: false, tooOld: 0, delivered: 12, oldestUndeliveredAtUs: null },
      },
    ],
    coverage: [
      {
        ...{ subscription: 'alps', state: 'partly-compared', expected: 12_004, pushed: 11_987 },
        ...{ late: 3, recovered: 14, missing: 0, complete: 1, pushedShare: 11_990 / 12_004 },
        ...{ comparedHours: 167, unknownHours: 1, pendingHours: 1, nextDueAtUs: nowUs - minuteUs },
      },
    ],
    comparisonOff: null,
    disk: { freeBytes: 41 * gibibyte, totalBytes: 80 * gibibyte, reserveBytes: 2 ** 28 },
    backups: {
      made: {
        file: '/var/backups/earshot/earshot-2026-05-02T09-00-00Z.db',
        ...{ startedAtUs: nowUs - 3 * hourUs, endedAtUs: nowUs - 3 * hourUs + 40_000_000 },
        ...{ bytes: 4.3 * gibibyte, lastPosition: 6_203_876, error: null },
      },
      failed: null,
      everyHours: 24,
    },
    ...changes,
  };
}

/** An alert that was raised an hour ago. */
export function activeAlert(kind: string, subject = '', level: Alert['level'] = 'warning'): Alert {
  return {
    id: 1,
    ...{ kind, subject, level },
    text: `The text of ${kind}.`,
    evidence: [],
    nextStep: `What to do about ${kind}.`,
    raisedAtUs: nowUs - hourUs,
    resolvedAtUs: null,
  };
}
