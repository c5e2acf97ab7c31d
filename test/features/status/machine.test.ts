/** The table of alert kinds: what each row finds, with its level and a next step that names a command. */
import { describe, expect, it } from 'vitest';
import type { Alert, Check, Moment } from '../../../src/core/terms/evaluation.ts';
import type { LastBackups } from '../../../src/core/terms/ports.ts';
import { backupCheck } from '../../../src/features/backup/status.ts';
import { certificateCheck } from '../../../src/features/certificate/status.ts';
import type { KnownNode } from '../../../src/features/shared-log/postgres-log.ts';
import { receiverCheck } from '../../../src/features/shared-log/status.ts';
import { type SinkState, sinkChecks } from '../../../src/features/sinks/report.ts';
import { subscriptionChecks } from '../../../src/features/subscriptions/checks.ts';
import { intakeCheck } from '../../../src/receiver/status.ts';
import { diskCheck } from '../../../src/store/status.ts';
import { activeAlert, beginUs, dayUs, hourUs, minuteUs, view } from '../alerts/watch-context.ts';
import { wellFacts } from './status-facts.ts';

const gib = 2 ** 30;
const disk = (total: number, free: number, reserve: number) => ({
  ...{ totalBytes: total * gib, freeBytes: free * gib, reserveBytes: reserve * gib },
});
const certificate = (leftDays: number, lifetimeDays: number) => ({
  notAfterUs: beginUs + leftDays * dayUs,
  lifetimeUs: lifetimeDays * dayUs,
  lastFailure: '[The authority](https://x.example) answered 500.',
});
const backup = (
  hours: number,
  everyHours: number | null,
): LastBackups & { everyHours: number | null } => {
  const atUs = beginUs - hours * hourUs;
  const made = {
    startedAtUs: atUs,
    endedAtUs: atUs,
    file: 'b.tar',
    error: null,
    bytes: 1,
    lastPosition: 1,
  };
  return { made, failed: null, everyHours };
};
const node = (fields: Partial<KnownNode>, facts: Partial<KnownNode['facts']> = {}): KnownNode => ({
  ...{ id: 'b', name: 'b', applied: 100_000, lag: 0, ageMs: 1_000, ...fields },
  facts: {
    ...{ version: '1', startedAtUs: 0, refusing: null, fault: null, freeBytes: 10 * gib },
    ...{ credentials: 'digest', ...facts },
  },
});
const [archive] = wellFacts().sinks as [SinkState];
const sink = (fields: Partial<SinkState>): SinkState => ({
  ...{ ...archive, lastDeliveredAtUs: beginUs, ...fields },
});
const agoUs = (minutes: number) => beginUs - minutes * minuteUs;

type Case = [title: string, level: string | null, text?: string, nextStep?: string];

/** A case of a row, evaluated without an active alert. */
function caseOf<Subject>(row: Check<Subject>, subject: Subject, ...expected: Case) {
  const moment: Moment = { nowUs: beginUs, upSinceUs: 0, alert: undefined };
  return { kind: row.kind, result: row.check(subject, moment), expected };
}

/** A case of a row with an active alert, which is resolved later than it was raised. */
function keptOf<Subject>(row: Check<Subject>, subject: Subject, ...expected: Case) {
  const alert: Alert = { ...activeAlert(row.kind, beginUs), level: 'critical' };
  const moment: Moment = { nowUs: beginUs, upSinceUs: 0, alert };
  return { kind: row.kind, result: row.check(subject, moment), expected };
}

/** A subscription, by the days until its pause and its deletion. */
const ending = (pauseDays: number, deleteDays: number) =>
  view(
    {},
    {
      activityAtUs: beginUs + (pauseDays - 60) * dayUs,
      notifiedAtUs: beginUs + (deleteDays - 365) * dayUs,
    },
  );

const lifetimeCheck = subscriptionChecks.find(({ kind }) => kind === 'lifetime') as Check<
  ReturnType<typeof view>
>;

const [sinkRow, refusedRow] = sinkChecks as [Check<SinkState>, Check<SinkState>];

const cases = [
  caseOf(certificateCheck, certificate(18.1, 90), 'with a fifth of its lifetime left', null),
  caseOf(certificateCheck, certificate(29, 365), 'of a year, with 29 days left', 'warning'),
  caseOf(certificateCheck, certificate(7.9, 40), 'of 40 days', 'warning', 'expires in 7 days'),
  caseOf(certificateCheck, certificate(1.9, 90), 'with less than two days', 'critical'),
  caseOf(certificateCheck, certificate(-1, 90), 'that has ended', 'critical', 'has expired'),
  caseOf(diskCheck, disk(15, 2, 0.3), 'of 15 GiB, with 2 free', null),
  caseOf(diskCheck, disk(1.9, 0.19, 0.1), 'of 2 GiB, with a tenth free', 'critical'),
  caseOf(diskCheck, disk(1.9, 0.29, 0.1), 'with less than three times the reserve', 'warning'),
  caseOf(diskCheck, disk(100, 59, 20), 'with a large reserve', 'warning', 'only', 'earshot prune'),
  caseOf(diskCheck, disk(100, 39, 20), 'with less than twice the reserve', 'critical'),
  caseOf(diskCheck, disk(100, 4.9, 0.3), 'with less than 5 GiB', 'warning'),
  keptOf(diskCheck, disk(100, 1.1, 0.3), 'still with little more than 1 GiB', 'critical'),
  keptOf(diskCheck, disk(100, 1.3, 0.3), 'with a fifth more than 1 GiB', 'warning'),
  keptOf(diskCheck, disk(100, 6.1, 0.3), 'with a fifth more than 5 GiB', null),
  caseOf(lifetimeCheck, ending(14.1, 30.1), 'with much time left', null),
  keptOf(lifetimeCheck, ending(14.1, 30.1), 'with less than a day more', 'warning', 'delete'),
  keptOf(lifetimeCheck, ending(15.1, 31.1), 'with a day more', null),
  caseOf(
    lifetimeCheck,
    ending(13.9, 31),
    'before a pause',
    'warning',
    'pause the subscription alps in 13',
  ),
  caseOf(lifetimeCheck, ending(2.9, 29), 'shortly before a pause', 'critical', 'will pause'),
  caseOf(
    lifetimeCheck,
    ending(15, 6.9),
    'before a deletion',
    'critical',
    'will delete',
    'show alps',
  ),
  caseOf(intakeCheck, null, 'that accepts', null),
  caseOf(intakeCheck, 'Full.', 'that refuses', 'critical', 'cannot be stored', 'earshot doctor'),
  caseOf(backupCheck, backup(47, 24), 'of 47 hours', null),
  caseOf(backupCheck, backup(49, 24), 'of 49 hours', 'warning', 'is 2 days old', 'earshot backup'),
  caseOf(
    backupCheck,
    { ...backup(1, 24), made: null },
    'that is not there',
    'warning',
    'no backup',
  ),
  caseOf(receiverCheck, node({ lag: 1_000 }), 'that reports', null),
  caseOf(
    receiverCheck,
    node({ ageMs: 61_000 }),
    'that is gone',
    'warning',
    '1 min',
    'log remove b',
  ),
  caseOf(receiverCheck, node({}, { refusing: 'No.' }), 'that refuses', 'warning', 'cannot store'),
  caseOf(receiverCheck, node({}, { fault: 'Full.' }), 'with a fault', 'warning', 'cannot apply'),
  caseOf(receiverCheck, node({ lag: 99_990 }), 'that lags', 'warning', 'lags 99,990 entries'),
  caseOf(receiverCheck, node({}, { freeBytes: 5e8 }), 'with a full disk', 'warning', 'free space'),
  caseOf(sinkRow, sink({}), 'that delivers', null),
  caseOf(sinkRow, sink({ failingSinceUs: agoUs(1) }), 'that fails', 'warning', 'does not deliver'),
  caseOf(sinkRow, sink({ oldestWaitingAtUs: agoUs(99) }), 'with old replays only', null),
  keptOf(sinkRow, sink({ oldestLiveWaitingAtUs: agoUs(6) }), 'with items of 6 minutes', 'warning'),
  keptOf(sinkRow, sink({ oldestLiveWaitingAtUs: agoUs(5) }), 'with items of 5 minutes', null),
  caseOf(
    sinkRow,
    sink({ oldestWaitingAtUs: agoUs(2), lastDeliveredAtUs: null }),
    'that never delivered',
    'warning',
    'does not',
  ),
  caseOf(sinkRow, sink({ oldestLiveWaitingAtUs: agoUs(15) }), 'with items of 15 minutes', null),
  caseOf(sinkRow, sink({ fault: 'Off.' }), 'with a fault', 'warning', 'Nothing is delivered'),
  caseOf(refusedRow, sink({ dead: 2 }), 'with dead letters', 'warning', '2 notifications', 'retry'),
];

describe('the row', () => {
  it.each(cases)('$kind, $expected.0: $expected.1', ({ result, expected }) => {
    const [, level, text = '', nextStep = ''] = expected;
    if (level === null) return expect(result).toBeNull();
    if (result === null || result === 'unchecked') throw new Error('There is no problem.');
    expect(result.level).toBe(level);
    expect(result.text).toContain(text);
    expect(result.nextStep).toContain(nextStep);
    expect(result.nextStep).toMatch(/`earshot|EARSHOT|disk|database/);
    expect([result.text, ...result.evidence].join('')).not.toMatch(/\]\(|https:\/\//);
  });
});
