/** States of a receiver: with every field set, with a fault in every part, and without any state. */
import type { Status } from '../../../src/core/status/status.ts';
import { evaluation, ok } from '../../../src/core/terms/evaluation.ts';
import { partNames } from '../../helpers/status.ts';
import { activeAlert, dayUs, hourUs, subscription } from './status-facts.ts';

const sampleAtUs = Date.UTC(2026, 4, 2, 12) * 1_000;
const agoUs = (us: number) => sampleAtUs - us;

/** Every field is known, and each figure is unique. */
export function sampleStatus(isFaulty = false): Status {
  const evaluated = isFaulty
    ? evaluation('critical', 'It has a fault.', 'Run `earshot doctor`.', 'It says so.')
    : ok('fine');
  const refusing = isFaulty ? 'The disk is full.' : null;
  const file = '/backups/earshot.db';
  const failedAtUs = agoUs(isFaulty ? hourUs : 5 * dayUs);
  return {
    ...{
      atUs: sampleAtUs,
      version: '0.1.0',
      indexBytes: 7_000,
      configFile: { fault: null, modifiedAtUs: null },
    },
    ...{ hasEndpoint: true, behindProxy: false, comparisonOff: null },
    receiver: {
      ...{ startedAtUs: agoUs(dayUs), pid: 4711, refusing },
      queue: { bytes: 1_000, bytesMax: 2_000 },
    },
    log: {
      ...{ usedBytes: 3_000, freeBytes: 4_000, walBytes: 5_000, firstPosition: 10 },
      ...{ lastPosition: 6_000, quarantined: 8, lastReceivedAtUs: agoUs(hourUs) },
      firstReceivedAtUs: agoUs(30 * dayUs),
      pruned: { position: 9, receivedBeforeUs: agoUs(40 * dayUs), prunedAtUs: agoUs(2 * dayUs) },
    },
    receivers: [
      {
        ...{ name: 'receiver-1', isThis: true, reportedAtUs: agoUs(5_000_000), lag: 3 },
        ...{ refusing, fault: isFaulty ? 'No space.' : null },
      },
    ],
    subscriptions: [
      subscription('alps', {
        ...{ state: isFaulty ? 'paused' : 'running', lastDeliveryAtUs: agoUs(2 * hourUs) },
        ...{ pausesAtUs: agoUs(-10 * dayUs), cancelsAtUs: agoUs(-60 * dayUs) },
        senders: [{ username: 'new', lastAtUs: agoUs(2 * hourUs) }],
        gaps: [{ fromUs: agoUs(3 * dayUs), toUs: agoUs(2 * dayUs), reason: 'It was paused.' }],
      }),
      subscription('andes', {
        ...{ state: isFaulty ? 'absent' : 'unfinished', type: 'pull', path: null },
        queue: {
          ...{ length: 27, lengthMax: 100_000, oldestAtUs: agoUs(4 * hourUs), entries: 29 },
          ...{ emptiedAtUs: agoUs(dayUs), readAtUs: agoUs(3_000_000) },
          failure: isFaulty ? 'The catalogue is down.' : null,
          failingSinceUs: isFaulty ? agoUs(60_000_000) : null,
        },
      }),
    ].map((one) => ({ ...one, evaluation: evaluated })),
    certificate: {
      ...{ notAfterUs: agoUs(-20 * dayUs), lifetimeUs: 90 * dayUs },
      ...{ lastAttemptAtUs: agoUs(3 * hourUs), lastSuccessAtUs: agoUs(30 * dayUs) },
      lastFailure: isFaulty ? 'The name was not proved.' : null,
    },
    readers: [
      {
        ...{ name: 'product index', of: 'products', position: 5_000, behind: 1_000 },
        ...{ unreadSinceUs: agoUs(600_000_000), lagMaxUs: 900_000_000 },
      },
      {
        ...{ name: 'sink orders', of: 'sinks', position: 6_000, behind: 0 },
        ...{ unreadSinceUs: null, lagMaxUs: null },
      },
    ],
    summaries: {
      ...{ mode: 'each', waiting: 11, dueAtUs: null, requests: 12, tokens: 14 },
      refusedAnswer: isFaulty ? 'It is empty.' : null,
    },
    sinks: [
      {
        ...{ name: 'orders', isSetUp: true, target: 'command', position: 6_000, behind: 32 },
        ...{ waiting: 15, failed: 33, dead: 16, isReplaying: true, tooOld: 0, delivered: 35 },
        ...{ oldestUndeliveredAtUs: agoUs(hourUs), oldestWaitingAtUs: agoUs(hourUs) },
        ...{ failingSinceUs: agoUs(hourUs / 4), lastError: null, deadError: null },
        ...{ lastDeliveredAtUs: null, evaluation: evaluated },
        fault: isFaulty ? 'The command is not there.' : null,
      },
    ],
    coverage: [
      {
        ...{ subscription: 'alps', state: 'partly-compared', expected: 17, pushed: 0 },
        ...{ missing: 18, recovered: 19, late: 20, comparedHours: 16, unknownHours: 21 },
        ...{ pendingHours: 1, nextDueAtUs: null, complete: 1, pushedShare: 1 },
      },
    ],
    disk: { freeBytes: 22_000, totalBytes: 23_000, reserveBytes: 24_000 },
    backups: {
      made: {
        ...{ file, startedAtUs: agoUs(dayUs), endedAtUs: agoUs(dayUs - 1) },
        ...{ bytes: 25_000, lastPosition: 26, error: null },
      },
      failed: {
        ...{ file, startedAtUs: failedAtUs, endedAtUs: failedAtUs, bytes: null },
        ...{ lastPosition: null, error: 'There is no space.' },
      },
      everyHours: 24,
    },
    failures: isFaulty ? [{ part: 'disk', reason: 'It does not say.' }] : [],
    parts: partNames.map((part) => ({ part, ...(part === 'disk' ? evaluated : ok('fine')) })),
    alerts: isFaulty ? [activeAlert('disk')] : [],
  };
}

/** A new receiver behind a proxy: every optional value is unknown. */
export function emptyStatus(): Status {
  return {
    ...sampleStatus(),
    ...{ receiver: null, log: null, certificate: null, disk: null, summaries: null, backups: null },
    ...{ subscriptions: [], readers: [], sinks: [], coverage: [], alerts: [] },
  };
}
