/** Parts of the status about the store: log, disk, and readers of the log. */

import { z } from 'zod';
import { bytes, gaugesIn, moment, seconds, secondsSince, toSeconds } from '../core/status/gauge.ts';
import { defineStatusPart, type StatusSources, watchOne } from '../core/status/status.ts';
import { shortDateUs } from '../core/terms/dates.ts';
import {
  checkOf,
  type Evaluation,
  evaluate,
  evaluation,
  ok,
  problem,
  type Situation,
} from '../core/terms/evaluation.ts';
import { type DiskSpace, diskLevels, firstOf } from '../core/terms/ports.ts';
import { agoText, counted, listed, percentText, sizeText } from '../core/terms/text.ts';
import { diskSpace } from './engine/disk-limit.ts';

const count = z.int().min(0);
const byteCount = z.number().min(0);
const momentUs = z.number().nullable();

const logSchema = z.object({
  usedBytes: byteCount.describe('Size of the database file without free pages.'),
  freeBytes: byteCount.describe(
    'Size of the free pages. New data uses the free pages before the file grows.',
  ),
  walBytes: byteCount.describe('Size of the write-ahead log of the database.'),
  firstPosition: count,
  lastPosition: count,
  quarantined: count.describe('Number of bodies that are still quarantined.'),
  firstReceivedAtUs: momentUs,
  lastReceivedAtUs: momentUs.describe('Time of the last push, including duplicates.'),
  pruned: z
    .object({ position: count, receivedBeforeUs: z.number(), prunedAtUs: z.number() })
    .nullable()
    .describe('Result of the last pruning; null if the log was never pruned.'),
});

const diskSchema = z
  .object({ freeBytes: byteCount, totalBytes: byteCount, reserveBytes: byteCount })
  .describe('With less free space than reserveBytes, the receiver refuses notifications.');

const readerSchema = z.object({
  name: z.string(),
  of: z.string().describe('What reads, such as `products`; `tail` for a command of the user.'),
  position: count,
  behind: count.describe('Number of log positions that the reader has not read.'),
  unreadSinceUs: momentUs.describe(
    'Time of receipt of the oldest notification that the reader has not read.',
  ),
});

export type ReaderStatus = z.infer<typeof readerSchema> & {
  /** Tolerated lag; null for a reader that its own part evaluates, and for one that reads only sometimes. */
  lagMaxUs: number | null;
};

declare module '../core/status/status.ts' {
  interface StatusFacts {
    log: z.infer<typeof logSchema> | null;
    /** Null if the space is not known. */
    disk: DiskSpace | null;
    readers: readonly ReaderStatus[];
  }
}

/** Rejects, as the functions below, with `unavailable` if a read fails. */
async function readLog({ store }: StatusSources, nowUs: number) {
  const [size, pruned, quarantined, newest, marks] = await Promise.all([
    store.pruning.logSize(),
    store.pruning.pruneHorizon(),
    store.quarantinedCount(),
    newestPushUs(store),
    store.administration.deliveryMarks(),
  ]);
  const delivered = marks.map(({ lastAtUs }) => lastAtUs);
  // Ignores times in the future, recorded with a wrong clock.
  const times = [newest ?? [], delivered].flat().filter((us) => us <= nowUs);
  const lastReceivedAtUs = times.length === 0 ? null : Math.max(...times);
  return { ...size, lastReceivedAtUs, quarantined, pruned };
}

/** Returns null if the newest one was recovered: delivery marks have the times of earlier pushes. */
async function newestPushUs({ find }: StatusSources['store']): Promise<number | null> {
  for await (const row of find({ limit: 1 }))
    return row.source !== 'reconcile' ? row.receivedAtUs : null;
  return null;
}

const logPart = defineStatusPart({
  name: 'log',
  unknown: { log: null },
  fields: { log: logSchema.nullable() },
  open: (sources) => ({ read: async (nowUs) => ({ log: await readLog(sources, nowUs) }) }),
  evaluate: ({ log }): Evaluation => {
    if (log === null) return ok('unknown');
    const { firstReceivedAtUs, usedBytes, pruned, quarantined } = log;
    const quarantine =
      quarantined === 0
        ? 'quarantine empty'
        : `${counted(quarantined, 'body', 'bodies')} in quarantine (\`earshot quarantine list\`)`;
    const size = `${sizeText(usedBytes)}; ${quarantine}`;
    if (firstReceivedAtUs === null) return ok(`empty, ${size}`);
    const start = pruned === null ? 'since' : 'pruned, since';
    return ok(`${start} ${shortDateUs(firstReceivedAtUs)} UTC, ${size}`);
  },
  metrics: {
    'Log and disk': [
      bytes(
        'earshot_log_used_bytes',
        'Size of the database file of the log, without free pages.',
        ({ log }) => log?.usedBytes,
      ),
      bytes(
        'earshot_log_free_bytes',
        'Size of the free pages in the database file of the log. New data uses the free pages before the file grows.',
        ({ log }) => log?.freeBytes,
      ),
      bytes(
        'earshot_log_wal_bytes',
        'Size of the write-ahead log of the database.',
        ({ log }) => log?.walBytes,
      ),
      gaugesIn('positions')(
        'earshot_log_last_position',
        'Highest position in the log.',
        ({ log }) => log?.lastPosition,
      ),
      moment(
        'earshot_log_first_received_timestamp_seconds',
        'Time of receipt of the oldest notification in the log.',
        ({ log }) => toSeconds(log?.firstReceivedAtUs),
      ),
      moment(
        'earshot_last_notification_timestamp_seconds',
        'Time of the last push of the catalogue, including duplicates.',
        ({ log }) => toSeconds(log?.lastReceivedAtUs),
      ),
      moment(
        'earshot_prune_horizon_timestamp_seconds',
        'Notifications received before this time were pruned; absent if the log was never pruned.',
        ({ log }) => toSeconds(log?.pruned?.receivedBeforeUs),
      ),
      gaugesIn('bodies')(
        'earshot_quarantined_bodies',
        'Number of bodies that are still quarantined.',
        ({ log }) => log?.quarantined,
      ),
    ],
  },
});

/** Resolved when a fifth more is free. */
const diskResolveFactor = 1.2;

/** Not checked when the free space is not known. */
export const diskCheck = checkOf<DiskSpace | null>('disk', (disk, { alert }) => {
  if (disk === null) return 'unchecked';
  const { freeBytes, totalBytes, reserveBytes } = disk;
  const { warningBytes, criticalBytes } = diskLevels(disk);
  const isBelow = (bytes: number, isActive: boolean) =>
    freeBytes < bytes * (isActive ? diskResolveFactor : 1);
  if (!isBelow(warningBytes, alert !== undefined)) return null;
  return problem(
    isBelow(criticalBytes, alert?.level === 'critical') ? 'critical' : 'warning',
    `The disk of the data directory has only ${sizeText(freeBytes)} of free space.`,
    'Free some space, remove old notifications with `earshot prune`, or move EARSHOT_DATA_DIR to a larger disk.',
    `That is ${percentText(freeBytes / totalBytes)} of ${sizeText(totalBytes)}. At ${sizeText(reserveBytes)}, notifications are refused and lost.`,
  );
});

/** Evaluates the disk of the data directory; null if its space is not known. */
export function evaluateDisk(disk: DiskSpace | null, situation: Situation): Evaluation {
  if (disk === null) return ok('free space unknown on this system');
  const fine = ok(`${sizeText(disk.freeBytes)} of ${sizeText(disk.totalBytes)} free`);
  return evaluate([diskCheck], disk, { situation, fine });
}

const diskPart = defineStatusPart({
  name: 'disk',
  unknown: { disk: null },
  fields: { disk: diskSchema.nullable() },
  open: ({ setting }) => {
    const read = async () =>
      diskSpace({ dataDir: setting('dataDir'), diskReserveBytes: setting('diskReserveBytes') });
    return {
      read: async () => ({ disk: await read() }),
      watch: () => [watchOne(diskCheck, read)],
    };
  },
  evaluate: ({ disk }, situation) => evaluateDisk(disk, situation),
  alertKinds: ['disk'],
  metrics: {
    'Log and disk': [
      bytes(
        'earshot_disk_free_bytes',
        'Free space for earshot on the disk of the data directory.',
        ({ disk }) => disk?.freeBytes,
      ),
      bytes(
        'earshot_disk_size_bytes',
        'Size of the disk of the data directory.',
        ({ disk }) => disk?.totalBytes,
      ),
      bytes(
        'earshot_disk_reserve_bytes',
        'Minimum free space on the disk. With less free space, the receiver refuses notifications.',
        ({ disk }) => disk?.reserveBytes,
      ),
    ],
  },
});

async function readReaders({ store }: StatusSources): Promise<ReaderStatus[]> {
  const [holders, { lastPosition }] = await Promise.all([
    store.pruning.pruneBlockers(),
    store.pruning.logSize(),
  ]);
  const readers = holders.filter(({ kind }) => kind !== 'pending');
  const states = readers.map(async ({ name, of, position, lagMaxUs = null }) => {
    const behind = Math.max(0, lastPosition - position);
    const first = behind === 0 ? null : await firstOf(store, { afterPosition: position });
    const unreadSinceUs = first?.receivedAtUs ?? null;
    return { name, of: of ?? 'tail', position, behind, unreadSinceUs, lagMaxUs };
  });
  return Promise.all(states);
}

const lagText = ({ name, behind }: ReaderStatus) =>
  `lag of ${name}: ${counted(behind, 'notification')}`;

/** Returns a warning if the reader has more lag than it may have. */
export function lagWarning(reader: ReaderStatus, atUs: number, maxUs: number): Evaluation | null {
  const lagUs = atUs - (reader.unreadSinceUs ?? atUs);
  if (lagUs <= maxUs) return null;
  return evaluation(
    'warning',
    `The ${lagText(reader)}, the oldest received ${agoText(lagUs)}.`,
    'No action is needed while the lag decreases. Otherwise check the log of the receiver.',
  );
}

const readerLabels = {
  reader: 'name of the reader',
  kind: 'products, summaries, sinks, queues, tail',
} as const;

const readerPart = defineStatusPart({
  name: 'readers',
  unknown: { readers: [] },
  fields: { readers: z.array(readerSchema) },
  open: (sources) => ({ read: async () => ({ readers: await readReaders(sources) }) }),
  evaluate: ({ readers, atUs }): Evaluation => {
    // A reader of `earshot tail` reads only while a user runs it.
    const shown = readers.filter(({ of, lagMaxUs }) => of === 'tail' || lagMaxUs !== null);
    if (shown.length === 0) return ok('none');
    for (const reader of shown) {
      const warning = reader.lagMaxUs === null ? null : lagWarning(reader, atUs, reader.lagMaxUs);
      if (warning !== null) return warning;
    }
    const current = shown.filter(({ behind }) => behind === 0).map(({ name }) => name);
    const lagging = shown.filter(({ behind }) => behind > 0).map(lagText);
    return ok(
      [
        ...(current.length === 0 ? [] : [`${listed(current)} up to date`]),
        ...lagging.slice(0, 3),
      ].join('; '),
    );
  },
  metrics: {
    Readers: [
      gaugesIn('notifications')(
        'earshot_reader_behind_notifications',
        'Backlog of a reader: number of log positions that the reader has not read. kind tail: a reader of `earshot tail --reader`, which reads only while the command runs.',
        ({ readers }) =>
          readers.map(({ name, of, behind }) => [{ reader: name, kind: of }, behind]),
        readerLabels,
      ),
      seconds(
        'earshot_reader_behind_seconds',
        'Age of the oldest notification that a reader has not read; 0 without a backlog.',
        ({ readers, atUs }) =>
          readers.map(({ name, of, unreadSinceUs }) => [
            { reader: name, kind: of },
            secondsSince(unreadSinceUs, atUs),
          ]),
        readerLabels,
      ),
    ],
  },
});

export const parts = [logPart, diskPart, readerPart];
