/** The table of alert kinds: what each row finds, with its level and a next step that names a command. */
import { expect, it } from 'vitest';
import type { Alert, Check, Moment } from '../../../src/core/terms/evaluation.ts';
import { backupCheck } from '../../../src/features/backup/status.ts';
import { certificateCheck } from '../../../src/features/certificate/status.ts';
import type { KnownNode } from '../../../src/features/shared-log/postgres-log.ts';
import { receiverCheck } from '../../../src/features/shared-log/status.ts';
import { type SinkState, sinkChecks } from '../../../src/features/sinks/report.ts';
import { intakeCheck } from '../../../src/receiver/status.ts';
import { diskCheck } from '../../../src/store/status.ts';
import { activeAlert, beginUs, dayUs, hourUs, minuteUs } from '../alerts/watch-context.ts';
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
const backup = (hours: number) => {
  const atUs = beginUs - hours * hourUs;
  const run = { file: 'b.tar', error: null, bytes: 1, lastPosition: 1 };
  return { made: { startedAtUs: atUs, endedAtUs: atUs, ...run }, failed: null, everyHours: 24 };
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
function of<Subject>(row: Check<Subject>, subject: Subject, ...expected: Case) {
  const moment: Moment = { nowUs: beginUs, upSinceUs: 0, alert: undefined };
  return { kind: row.kind, result: row.check(subject, moment), expected };
}

/** A case of a row with an active alert, which is resolved later than it was raised. */
function kept<Subject>(row: Check<Subject>, subject: Subject, ...expected: Case) {
  const alert: Alert = { ...activeAlert(row.kind, beginUs), level: 'critical' };
  const moment: Moment = { nowUs: beginUs, upSinceUs: 0, alert };
  return { kind: row.kind, result: row.check(subject, moment), expected };
}

const [sinkRow] = sinkChecks as [Check<SinkState>];

const cases = [
  of(certificateCheck, certificate(18.1, 90), 'with a fifth of its lifetime left', null),
  of(certificateCheck, certificate(29, 365), 'of a year, with 29 days left', 'warning'),
  of(certificateCheck, certificate(7.9, 40), 'of 40 days', 'warning', 'expires in 7 days'),
  of(certificateCheck, certificate(1.9, 90), 'with less than two days', 'critical'),
  of(certificateCheck, certificate(-1, 90), 'that has ended', 'critical', 'has expired'),
  of(diskCheck, disk(15, 2, 0.3), 'of 15 GiB, with 2 free', null),
  of(diskCheck, disk(1.9, 0.19, 0.1), 'of 2 GiB, with a tenth free', 'critical'),
  of(diskCheck, disk(1.9, 0.29, 0.1), 'with less than three times the reserve', 'warning'),
  of(diskCheck, disk(100, 59, 20), 'with a large reserve', 'warning', 'only', 'earshot prune'),
  of(diskCheck, disk(100, 39, 20), 'with less than twice the reserve', 'critical'),
  of(diskCheck, disk(100, 4.9, 0.3), 'with less than 5 GiB', 'warning'),
  kept(diskCheck, disk(100, 1.1, 0.3), 'still with little more than 1 GiB', 'critical'),
  kept(diskCheck, disk(100, 1.3, 0.3), 'with a fifth more than 1 GiB', 'warning'),
  kept(diskCheck, disk(100, 6.1, 0.3), 'with a fifth more than 5 GiB', null),
  of(intakeCheck, null, 'that accepts', null),
  of(intakeCheck, 'Full.', 'that refuses', 'critical', 'cannot be stored', 'earshot doctor'),
  of(backupCheck, backup(47), 'of 47 hours', null),
  of(backupCheck, { ...backup(1), made: null }, 'that is not there', 'warning', 'no backup'),
  of(receiverCheck, node({ lag: 1_000 }), 'that reports', null),
  of(receiverCheck, node({ ageMs: 61_000 }), 'that is gone', 'warning', '1 min', 'log remove b'),
  of(receiverCheck, node({}, { refusing: 'No.' }), 'that refuses', 'warning', 'cannot store'),
  of(receiverCheck, node({}, { fault: 'Full.' }), 'with a fault', 'warning', 'cannot apply'),
  of(receiverCheck, node({ lag: 99_990 }), 'that lags', 'warning', 'lags 99,990 entries'),
  of(receiverCheck, node({}, { freeBytes: 5e8 }), 'with a full disk', 'warning', 'free space'),
  of(sinkRow, sink({}), 'that delivers', null),
  of(sinkRow, sink({ failingSinceUs: agoUs(1) }), 'that fails', 'warning', 'does not deliver'),
  kept(sinkRow, sink({ oldestWaitingAtUs: agoUs(6) }), 'with items of 6 minutes', 'warning'),
  kept(sinkRow, sink({ oldestWaitingAtUs: agoUs(5) }), 'with items of 5 minutes', null),
  of(
    sinkRow,
    sink({ oldestWaitingAtUs: agoUs(2), lastDeliveredAtUs: null }),
    'that never did',
    'warning',
    'does not',
  ),
  of(sinkRow, sink({ oldestWaitingAtUs: agoUs(15) }), 'with items of 15 minutes', null),
];

it.each(cases)('the row $kind, $expected.0: $expected.1', ({ result, expected }) => {
  const [, level, text = '', nextStep = ''] = expected;
  if (level === null) return expect(result).toBeNull();
  if (result === null || result === 'unchecked') throw new Error('There is no problem.');
  expect(result.level).toBe(level);
  expect(result.text).toContain(text);
  expect(result.nextStep).toContain(nextStep);
  expect(result.nextStep).toMatch(/`earshot|EARSHOT|disk|database/);
  expect([result.text, ...result.evidence].join('')).not.toMatch(/\]\(|https:\/\//);
});
