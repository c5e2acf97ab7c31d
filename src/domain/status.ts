/**
 * The status of a receiver as one document, shown by `earshot status`, `/api/status` and the metrics. Times are
 * microseconds since 1970, UTC. Null: not known, or none.
 */
import { z } from 'zod';
import { type Alert, alertKinds, alertSeverities } from './alerts.ts';
import {
  type CoverageSummary,
  comparisonFields,
  coverageSummaryFields,
  toComparison,
  toSummary,
} from './coverage.ts';
import { toJson } from './json-rows.ts';
import { summaryRuleKinds } from './summaries.ts';

/** Parts that are evaluated and shown separately, in this order. */
export const statusParts = [
  'receiver',
  'log',
  'subscriptions',
  'certificate',
  'coverage',
  'readers',
  'sinks',
  'summaries',
  'disk',
  'backup',
  'alerts',
] as const;

export type StatusPart = (typeof statusParts)[number];

/** Levels of a part. `unused`: turned off, or nothing to report; not a problem. */
export const statusLevels = ['well', 'unused', 'warning', 'critical'] as const;

const count = z.int().min(0);

const bytes = z.number().min(0);

const timeUs = z.number();

const momentUs = timeUs.nullable();

const reason = z.string().nullable();

const part = z.enum(statusParts);

const partStatus = z.object({
  part,
  level: z.enum(statusLevels).describe('`unused`: turned off, or nothing to report.'),
  text: z.string(),
  nextStep: reason.describe('Next step; null if none is needed.'),
});

const receiver = z.object({
  startedAtUs: momentUs,
  pid: z.int().positive().nullable().describe('Process id of the receiver; null if not known.'),
  refusing: reason.describe('Why notifications are refused; null while they are accepted.'),
  queue: z
    .object({ bytes, bytesMax: bytes })
    .nullable()
    .describe('Bodies waiting for their commit. Above bytesMax, pushes are answered with 503.'),
});

const log = z.object({
  usedBytes: bytes.describe('Database file without its free pages.'),
  freeBytes: bytes.describe('Free pages of the file, which are used before it grows.'),
  walBytes: bytes.describe('Write-ahead log.'),
  firstPosition: count,
  lastPosition: count,
  indexBytes: bytes.describe('Product index; 0 without one.'),
  quarantined: count.describe('Quarantined bodies that were not released.'),
  firstReceivedAtUs: momentUs,
  lastReceivedAtUs: momentUs.describe('Last push, including duplicates.'),
  pruned: z
    .object({ position: count, receivedBeforeUs: timeUs, prunedAtUs: timeUs })
    .nullable()
    .describe('Extent of the pruning; null if the log was never pruned.'),
});

const subscription = z.object({
  name: z.string(),
  state: z.enum(['running', 'paused', 'unfinished', 'absent']),
  /** Paused by a command of the user, or in the desired state. */
  pausedOnPurpose: z.boolean(),
  lastDeliveryAtUs: momentUs,
  // Specification, Limits.
  pausesAtUs: momentUs.describe('When the catalogue pauses it, unless a push is accepted before.'),
  cancelsAtUs: momentUs.describe(
    'When the catalogue deletes it, unless a push is accepted before.',
  ),
});

const certificate = z.object({
  notAfterUs: momentUs.describe('Null until the first certificate is issued.'),
  lifetimeUs: z.number().nullable(),
  lastAttemptAtUs: momentUs.describe(
    'Last renewal attempt; null for certificate files of your own.',
  ),
  lastSuccessAtUs: momentUs,
  lastFailure: reason.describe('Why the last renewal failed; null if it succeeded.'),
});

const reader = z.object({
  name: z.string(),
  /** A part of earshot, or a command of the user (`tail`). */
  of: z.enum(['index', 'summaries', 'sink', 'tail']),
  position: count,
  behind: count.describe('Positions of the log not read yet.'),
  unreadSinceUs: momentUs.describe('Time of receipt of the first of them.'),
});

const sink = z.object({
  name: z.string(),
  isSetUp: z.boolean().nullable().describe('True if earshot.config.ts defines it.'),
  waiting: count,
  dead: count,
  lastError: reason.describe('Error of the last delivery; null if it succeeded.'),
  fault: reason.describe('Why nothing can be delivered to it; null if deliveries are possible.'),
  oldestWaitingAtUs: momentUs,
  oldestLiveWaitingAtUs: momentUs.describe('The same without replayed items.'),
});

const summaries = z.object({
  /** Combined mode of all subscriptions: `each` if any has it. */
  mode: z.enum(summaryRuleKinds),
  waiting: count,
  failed: count,
  requests: count.describe('Requests to the inference service in the last 24 hours.'),
  tokens: count.describe('Tokens used in the last 24 hours.'),
  /** May be in the past. */
  nextDueAtUs: momentUs,
});

const run = z.object({
  file: z.string(),
  bytes: bytes.nullable(),
  lastPosition: count.nullable(),
  error: reason,
  startedAtUs: timeUs,
  endedAtUs: timeUs,
});

const alert = z.object({
  id: count,
  kind: z.enum(alertKinds),
  subject: z.string(),
  severity: z.enum(alertSeverities),
  cause: z.string(),
  nextStep: z.string(),
  evidence: z.array(z.string()),
  raisedAtUs: timeUs,
});

/** The status document, written by `toStatusJson`. */
export const statusSchema = z.object({
  atUs: timeUs.describe('Time of the status: at most a few seconds ago.'),
  version: z.string(),
  well: z.boolean().describe('True if no part has the level warning or critical.'),
  parts: z.array(partStatus).describe('Level and text of each part.'),
  failures: z
    .array(z.object({ part, reason: z.string() }))
    .describe('Parts that could not be checked. Their fields are null or empty.'),
  receiver: receiver.nullable(),
  log: log.nullable(),
  subscriptions: z.array(subscription),
  behindProxy: z
    .boolean()
    .describe('True if a reverse proxy terminates HTTPS and has the certificate.'),
  certificate: certificate
    .nullable()
    .describe('Null behind a proxy, and before the first certificate.'),
  coverage: z.array(z.object(coverageSummaryFields)).describe('Coverage of the last seven days.'),
  comparison: comparisonFields,
  readers: z.array(reader),
  sinks: z.array(sink),
  summaries: summaries.nullable(),
  disk: z
    .object({ freeBytes: bytes, totalBytes: bytes, reserveBytes: bytes })
    .nullable()
    .describe('Notifications are refused when less than reserveBytes is free.'),
  backups: z
    // `everyHours` is null if automatic backups are off.
    .object({ made: run.nullable(), failed: run.nullable(), everyHours: z.number().nullable() })
    .nullable()
    .describe('Last successful and last failed backup.'),
  alerts: z.array(alert).describe('Active alerts, newest first.'),
});

type StatusDocument = z.infer<typeof statusSchema>;

export type PartStatus = z.infer<typeof partStatus>;
export type ReceiverStatus = z.infer<typeof receiver>;
export type LogStatus = z.infer<typeof log>;
export type SubscriptionStatus = z.infer<typeof subscription>;
export type CertificateStatus = z.infer<typeof certificate>;
export type ReaderStatus = z.infer<typeof reader>;
export type SinkStatus = z.infer<typeof sink>;
export type SummaryStatus = z.infer<typeof summaries>;

/** The document without derived fields. `receiver` is null when no receiver runs: only the store was read. */
export interface StatusFacts
  extends Omit<StatusDocument, 'well' | 'parts' | 'coverage' | 'comparison' | 'alerts'> {
  /** Why the current `earshot.config.ts` is rejected; null or absent when it is in effect. */
  rejectedConfig?: string | null;
  /** Coverage of the last seven days. */
  coverage: readonly CoverageSummary[];
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  /** Active alerts. */
  alerts: readonly Alert[];
}

/** Facts and their evaluation. */
export interface Status extends StatusFacts {
  /** Parts, in the order of `statusParts`. */
  parts: readonly PartStatus[];
}

/** Converts a status to JSON, with times as ISO 8601 UTC. */
export function toStatusJson(status: Status) {
  const { parts, coverage, comparisonOff, alerts } = status;
  return toJson(statusSchema, {
    ...status,
    well: isWell(status),
    parts: [...parts],
    coverage: coverage.map((one) => toSummary(one, comparisonOff)),
    comparison: toComparison(comparisonOff),
    alerts: alerts.map((one) => ({ ...one, evidence: [...one.evidence] })),
  });
}

/** Returns true when no part has a problem. */
export function isWell({ parts }: Pick<Status, 'parts'>): boolean {
  return parts.every(({ level }) => level === 'well' || level === 'unused');
}
