/** Gauges of what works beside intake, and of the machine: readers, summaries, sinks, coverage, disk, backups. */
import { alertKinds } from '../../domain/alerts.ts';
import { type PartStatus, statusParts } from '../../domain/status.ts';
import {
  labelledGauge,
  registeredNames,
  type Sample,
  type StatusMetric,
  statusGauge,
  toSeconds,
} from './metric-row.ts';

const reader = {
  reader: 'its name',
  kind: 'index, summaries, sink, tail',
} as const;

export const readerMetrics: readonly StatusMetric[] = [
  labelledGauge(
    'earshot_reader_behind_notifications',
    'notifications',
    'Positions of the log that a reader of it has yet to read. tail: a command of yours, which may never come back.',
    reader,
    ({ readers }) => readers.map(({ name, of, behind }) => [{ reader: name, kind: of }, behind]),
  ),
  labelledGauge(
    'earshot_reader_behind_seconds',
    'seconds',
    'How long ago the first notification was received that a reader has yet to read; 0 when it has read all.',
    reader,
    ({ readers, atUs }) =>
      readers.map(({ name, of, unreadSinceUs }) => [
        { reader: name, kind: of },
        secondsSince(unreadSinceUs, atUs),
      ]),
  ),
];

export const summaryMetrics: readonly StatusMetric[] = [
  labelledGauge(
    'earshot_summaries',
    'summaries',
    'Summaries that wait to be made, and those that were given up.',
    { state: 'waiting, failed' },
    ({ summaries }) => [
      [{ state: 'waiting' }, summaries?.waiting],
      [{ state: 'failed' }, summaries?.failed],
    ],
  ),
  statusGauge(
    'earshot_inference_requests_last_day',
    'requests',
    'What was asked of the inference service within the last 24 hours.',
    ({ summaries }) => summaries?.requests,
  ),
  statusGauge(
    'earshot_inference_tokens_last_day',
    'tokens',
    'Tokens that the inference service counted within the last 24 hours.',
    ({ summaries }) => summaries?.tokens,
  ),
];

const sink = { sink: 'its name' };

export const sinkMetrics: readonly StatusMetric[] = [
  labelledGauge(
    'earshot_sink_items',
    'items',
    'Items that wait to be taken by a sink, and those that were given up.',
    { ...sink, state: 'waiting, dead' },
    ({ sinks }) =>
      sinks.flatMap(({ name, waiting, dead }): Sample[] => [
        [{ sink: name, state: 'waiting' }, waiting],
        [{ sink: name, state: 'dead' }, dead],
      ]),
  ),
  labelledGauge(
    'earshot_sink_oldest_waiting_seconds',
    'seconds',
    'How long ago the oldest item that waits for a sink was queued, replays not counted; 0 when none waits.',
    sink,
    ({ sinks, atUs }) =>
      sinks.map(({ name, oldestLiveWaitingAtUs }) => [
        { sink: name },
        secondsSince(oldestLiveWaitingAtUs, atUs),
      ]),
  ),
  labelledGauge(
    'earshot_sink_faulty',
    '0 or 1',
    '1 while nothing can be handed over to a sink, for a fault of its settings or its own.',
    sink,
    ({ sinks }) => sinks.map(({ name, fault }) => [{ sink: name }, fault !== null]),
  ),
];

export const coverageMetrics: readonly StatusMetric[] = [
  labelledGauge(
    'earshot_coverage_events',
    'events',
    'Events of the last seven days that the catalogue shows since the subscription began (expected), and of those: not in the log (missing), never pushed and fetched (recovered), pushed late (late). Absent before the first comparison.',
    { subscription: registeredNames, kind: 'expected, missing, recovered, late' },
    ({ coverage }) =>
      coverage
        .filter(({ state }) => state !== 'not-compared')
        .flatMap(({ subscription, expected, missing, recovered, late }) =>
          Object.entries({ expected, missing, recovered, late }).map(
            ([kind, count]): Sample => [{ subscription, kind }, count],
          ),
        ),
  ),
  labelledGauge(
    'earshot_coverage_unknown_hours',
    'hours',
    'Hours of the last seven days that ended more than half an hour ago and have not been compared with the catalogue.',
    { subscription: registeredNames },
    ({ coverage }) =>
      coverage.map(({ subscription, unknownHours }) => [{ subscription }, unknownHours]),
  ),
];

export const diskMetrics: readonly StatusMetric[] = [
  statusGauge(
    'earshot_disk_free_bytes',
    'bytes',
    'What is free on the disk of the data directory, for earshot.',
    ({ disk }) => disk?.freeBytes,
  ),
  statusGauge(
    'earshot_disk_size_bytes',
    'bytes',
    'The size of the disk of the data directory.',
    ({ disk }) => disk?.totalBytes,
  ),
  statusGauge(
    'earshot_disk_reserve_bytes',
    'bytes',
    'With less than this free on the disk, notifications are refused.',
    ({ disk }) => disk?.reserveBytes,
  ),
];

export const backupMetrics: readonly StatusMetric[] = [
  statusGauge(
    'earshot_backup_success_timestamp_seconds',
    'seconds since 1970',
    'When the newest verified backup was begun: what came before is in it.',
    ({ backups }) => toSeconds(backups?.made?.startedAtUs),
  ),
  statusGauge(
    'earshot_backup_succeeded',
    '0 or 1',
    'Whether the last backup succeeded; absent when none was ever tried.',
    ({ backups }) => {
      const [made, failed] = [backups?.made?.endedAtUs, backups?.failed?.endedAtUs];
      if (made === undefined && failed === undefined) return null;
      return (made ?? 0) >= (failed ?? 0);
    },
  ),
  statusGauge(
    'earshot_backup_bytes',
    'bytes',
    'The size of the newest backup.',
    ({ backups }) => backups?.made?.bytes,
  ),
  statusGauge(
    'earshot_backup_interval_seconds',
    'seconds',
    'How often a backup is made by itself; absent when none is.',
    ({ backups }) => backups?.everyHours && backups.everyHours * 3_600,
  ),
];

const levels: Readonly<Record<PartStatus['level'], number>> = {
  well: 0,
  unused: 0,
  warning: 1,
  critical: 2,
};

export const programMetrics: readonly StatusMetric[] = [
  labelledGauge(
    'earshot_status_level',
    '0 to 2',
    'How a part stands by the judgement of `earshot status`: 0 well or unused, 1 warning, 2 critical.',
    { part: statusParts.join(', ') },
    ({ parts }) => parts.map(({ part, level }) => [{ part }, levels[level]]),
  ),
  labelledGauge(
    'earshot_status_known',
    '0 or 1',
    '0 for a part that could not be looked at: its metrics are absent.',
    { part: statusParts.join(', ') },
    ({ failures }) =>
      statusParts.map((part) => [{ part }, failures.every((failure) => failure.part !== part)]),
  ),
  labelledGauge(
    'earshot_alerts',
    'alerts',
    'Alerts of the watchdog that last.',
    { kind: alertKinds.join(', ') },
    ({ alerts }) =>
      alertKinds.map((kind) => [{ kind }, alerts.filter((one) => one.kind === kind).length]),
  ),
  labelledGauge(
    'earshot_build_info',
    '1',
    'Which version runs, on which Node: always 1.',
    { version: 'of earshot', node: 'of Node' },
    ({ version }) => [[{ version, node: process.versions.node }, 1]],
  ),
];

function secondsSince(sinceUs: number | null, atUs: number): number {
  return sinceUs === null ? 0 : Math.max(0, atUs - sinceUs) / 1_000_000;
}
