/** Receiver states: one with every field set, and one with every field changed. */

import type { Status } from '../../../src/core/status/status.ts';
import { type Evaluation, evaluation, ok } from '../../../src/core/terms/evaluation.ts';
import { partNames } from '../../helpers/status.ts';
import { subscription } from './status-facts.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

export const sampleAtUs = Date.UTC(2026, 4, 2, 12) * 1_000;

/** A fault, or none. */
function sampleEvaluation(isFault: boolean): Evaluation {
  return isFault
    ? evaluation('critical', 'It has a fault.', 'Run `earshot doctor`.', 'It says so.')
    : ok('fine');
}

/** Every field is known, and each figure is unique; `moved` changes every one. */
export function sampleStatus(moved = false): Status {
  const step = moved ? 1 : 0;
  const atUs = sampleAtUs + step * hourUs;
  const agoUs = (us: number) => sampleAtUs - us + step * 60_000_000;
  return {
    atUs,
    version: moved ? '0.2.0' : '0.1.0',
    receiver: {
      startedAtUs: agoUs(dayUs),
      pid: 4711,
      refusing: moved ? 'The disk is full.' : null,
      queue: { bytes: 1_000 + step, bytesMax: 2_000 + step },
    },
    log: {
      usedBytes: 3_000 + step,
      freeBytes: 4_000 + step,
      walBytes: 5_000 + step,
      firstPosition: 10 + step,
      lastPosition: 6_000 + step,
      firstReceivedAtUs: agoUs(30 * dayUs),
      lastReceivedAtUs: agoUs(hourUs),
      quarantined: 8 + step,
      pruned: { position: 9, receivedBeforeUs: agoUs(40 * dayUs), prunedAtUs: agoUs(2 * dayUs) },
    },
    indexBytes: 7_000 + step,
    rejectedConfig: null,
    receivers: [
      {
        ...{ name: 'receiver-1', isThis: true, reportedAtUs: agoUs(5_000_000), lag: 3 + step },
        ...{ refusing: moved ? 'The disk is full.' : null, fault: moved ? 'No space.' : null },
      },
    ],
    subscriptions: [
      subscription('alps', {
        ...{ state: moved ? 'paused' : 'running', lastDeliveryAtUs: agoUs(2 * hourUs) },
        ...{ pausesAtUs: agoUs(-10 * dayUs), cancelsAtUs: agoUs(-60 * dayUs) },
        senders: [{ username: 'new', lastAtUs: agoUs(2 * hourUs) }],
        gaps: [{ fromUs: agoUs(3 * dayUs), toUs: agoUs(2 * dayUs), reason: 'It was paused.' }],
      }),
      subscription('andes', {
        ...{ state: moved ? 'absent' : 'unfinished', type: 'pull', path: null },
        queue: {
          ...{ length: 27 + step, lengthMax: 100_000 + step, oldestAtUs: agoUs(4 * hourUs) },
          ...{ emptiedAtUs: agoUs(dayUs), readAtUs: agoUs(3_000_000) },
          ...{ entries: 29 + step },
          failure: moved ? 'The catalogue is down.' : null,
          failingSinceUs: moved ? agoUs(60_000_000) : null,
          otherReader: moved ? { atUs: agoUs(hourUs), entries: 31 } : null,
        },
      }),
    ].map((one) => ({ ...one, evaluation: sampleEvaluation(moved) })),
    hasEndpoint: true,
    behindProxy: false,
    certificate: {
      notAfterUs: agoUs(-20 * dayUs),
      lifetimeUs: 90 * dayUs + step,
      lastAttemptAtUs: agoUs(3 * hourUs),
      lastSuccessAtUs: agoUs(30 * dayUs),
      lastFailure: moved ? 'The name was not proved.' : null,
    },
    readers: [
      {
        name: 'product index',
        of: 'products',
        position: 5_000,
        behind: 1_000 + step,
        unreadSinceUs: agoUs(600_000_000),
        lagMaxUs: 900_000_000,
      },
      {
        ...{ name: 'sink orders', of: 'sinks', position: 6_000, behind: step },
        ...{ unreadSinceUs: null, lagMaxUs: null },
      },
    ],
    summaries: {
      mode: 'each',
      waiting: 11 + step,
      dueAtUs: null,
      refusedAnswer: moved ? { model: 'a/b', refused: 'it is empty', answer: '' } : null,
      requests: 12 + step,
      tokens: 14 + step,
    },
    sinks: [
      {
        ...{ name: 'orders', isSetUp: true, target: moved ? 'webhook' : 'command' },
        ...{ position: 6_000, behind: 32 + step, waiting: 15 + step, failed: 33 + step },
        ...{ dead: 16 + step, replays: 34 + step, delivered: 35 + step },
        ...{ oldestUndeliveredAtUs: agoUs(hourUs), oldestWaitingAtUs: agoUs(hourUs) },
        ...{ oldestLiveWaitingAtUs: agoUs(hourUs / 2), failingSinceUs: agoUs(hourUs / 4) },
        ...{ lastError: null, lastDeliveredAtUs: null },
        fault: moved ? 'The command is not there.' : null,
        evaluation: sampleEvaluation(moved),
      },
    ],
    coverage: [
      {
        subscription: 'alps',
        state: 'partly-compared',
        expected: 17 + step,
        pushed: 0,
        missing: 18 + step,
        recovered: 19 + step,
        late: 20 + step,
        comparedHours: 16 + step,
        unknownHours: 21 + step,
        pendingHours: 1,
        nextDueAtUs: null,
        complete: 1,
        pushedShare: 1,
      },
    ],
    comparisonOff: null,
    disk: { freeBytes: 22_000 + step, totalBytes: 23_000 + step, reserveBytes: 24_000 + step },
    backups: {
      made: {
        file: '/backups/earshot.db',
        startedAtUs: agoUs(dayUs),
        endedAtUs: agoUs(dayUs - 1),
        bytes: 25_000 + step,
        lastPosition: 26,
        error: null,
      },
      failed: {
        file: '/backups/earshot.db',
        startedAtUs: agoUs(moved ? hourUs : 5 * dayUs),
        endedAtUs: agoUs(moved ? hourUs : 5 * dayUs),
        bytes: null,
        lastPosition: null,
        error: 'There is no space.',
      },
      everyHours: 24 + step,
    },
    failures: moved ? [{ part: 'disk', reason: 'It does not say.' }] : [],
    parts: partNames.map((part) => ({
      part,
      ...sampleEvaluation(moved && part === 'disk'),
    })),
    alerts: moved
      ? [
          {
            id: 1,
            kind: 'disk',
            subject: '',
            level: 'warning',
            text: 'Little is left.',
            evidence: [],
            nextStep: 'Free some space.',
            raisedAtUs: agoUs(0),
            resolvedAtUs: null,
          },
        ]
      : [],
  };
}

/** A new receiver behind a proxy: every optional value is unknown. */
export function emptyStatus(): Status {
  const full = sampleStatus();
  return {
    ...full,
    receiver: null,
    log: null,
    subscriptions: [],
    certificate: null,
    readers: [],
    sinks: [],
    coverage: [],
    disk: null,
    summaries: null,
    backups: null,
    alerts: [],
  };
}
