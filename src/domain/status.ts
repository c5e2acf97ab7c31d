/**
 * The status of a receiver, as one document: `earshot status`, `/api/status` and the metrics show it. Times are
 * microseconds since 1970, UTC; null is not known, or there is none.
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

/** Parts that are shown and evaluated on their own, in the order of showing. */
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

/** `unused` is a part that is turned off, or that there is nothing to say of: nothing is wrong with it. */
export const statusLevels = ['well', 'unused', 'warning', 'critical'] as const;

const count = z.int().min(0);

const bytes = z.number().min(0);

const timeUs = z.number();

const momentUs = timeUs.nullable();

const reason = z.string().nullable();

const part = z.enum(statusParts);

const partStatus = z.object({
  part,
  level: z.enum(statusLevels).describe('`unused`: turned off, or nothing to say.'),
  text: z.string(),
  nextStep: reason.describe('What to do; null where there is nothing to do.'),
});

const receiver = z.object({
  startedAtUs: momentUs,
  pid: z.int().positive().nullable().describe('Process id of the receiver; null when not known.'),
  refusing: reason.describe('Why notifications cannot be taken; null when they can.'),
  queue: z
    .object({ bytes, bytesMax: bytes })
    .nullable()
    .describe('Bodies that wait for their commit; beyond bytesMax senders get 503.'),
});

const log = z.object({
  usedBytes: bytes.describe('The database file without its free pages.'),
  freeBytes: bytes.describe('Free pages in it, which are used before it grows.'),
  walBytes: bytes.describe('The write-ahead log beside it.'),
  firstPosition: count,
  lastPosition: count,
  indexBytes: bytes.describe('The product index; 0 without one.'),
  quarantined: count.describe('Bodies that are held.'),
  firstReceivedAtUs: momentUs,
  lastReceivedAtUs: momentUs.describe('The last delivery, one that was known already included.'),
  pruned: z
    .object({ position: count, receivedBeforeUs: timeUs, prunedAtUs: timeUs })
    .nullable()
    .describe('How far the log was pruned; null when it never was.'),
});

const subscription = z.object({
  name: z.string(),
  state: z.enum(['running', 'paused', 'unfinished', 'absent']),
  /** Paused by the user's own command, or configured so. */
  pausedOnPurpose: z.boolean(),
  lastDeliveryAtUs: momentUs,
  // Specification, Limits.
  pausesAtUs: momentUs.describe('When the catalogue pauses it, if nothing comes until then.'),
  cancelsAtUs: momentUs.describe('When the catalogue deletes it, if nothing comes until then.'),
});

const certificate = z.object({
  notAfterUs: momentUs.describe('Null while the first certificate is tried for.'),
  lifetimeUs: z.number().nullable(),
  lastAttemptAtUs: momentUs.describe('The last renewal; null with files of your own.'),
  lastSuccessAtUs: momentUs,
  lastFailure: reason.describe('Why the last renewal failed; null when it did not.'),
});

const reader = z.object({
  name: z.string(),
  /** A part of earshot, or a command of the user's. */
  of: z.enum(['index', 'summaries', 'sink', 'tail']),
  position: count,
  behind: count.describe('Positions of the log that it has yet to read.'),
  unreadSinceUs: momentUs.describe('When the first of them was received.'),
});

const sink = z.object({
  name: z.string(),
  isSetUp: z.boolean().nullable().describe('Whether earshot.config.ts has it.'),
  waiting: count,
  dead: count,
  lastError: reason.describe('Why the item that was tried last failed.'),
  fault: reason.describe('Why nothing can be handed over to it; null when it can.'),
  oldestWaitingAtUs: momentUs,
  oldestLiveWaitingAtUs: momentUs.describe('The same without replays.'),
});

const summaries = z.object({
  /** Of the rules of all subscriptions: `each` where any asks for it. */
  mode: z.enum(summaryRuleKinds),
  waiting: count,
  failed: count,
  requests: count.describe('Asked of the inference service in the last 24 hours.'),
  tokens: count.describe('Spent in the last 24 hours.'),
  /** May lie in the past. */
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

/** The document; `toStatusJson` writes it. */
export const statusSchema = z.object({
  atUs: timeUs.describe('When it was gathered: at most some seconds ago.'),
  version: z.string(),
  well: z.boolean().describe('Whether no part is at level warning or critical.'),
  parts: z.array(partStatus).describe('How each part stands, in words.'),
  failures: z
    .array(z.object({ part, reason: z.string() }))
    .describe('Parts that could not be looked at. Their fields are null or empty.'),
  receiver: receiver.nullable(),
  log: log.nullable(),
  subscriptions: z.array(subscription),
  behindProxy: z.boolean().describe('Whether a proxy speaks HTTPS, and has the certificate.'),
  certificate: certificate.nullable().describe('Null behind a proxy, and before the first.'),
  coverage: z.array(z.object(coverageSummaryFields)).describe('Of the last seven days.'),
  comparison: comparisonFields,
  readers: z.array(reader),
  sinks: z.array(sink),
  summaries: summaries.nullable(),
  disk: z
    .object({ freeBytes: bytes, totalBytes: bytes, reserveBytes: bytes })
    .nullable()
    .describe('With less than reserveBytes free, notifications are refused.'),
  backups: z
    // `everyHours` is null where none are made automatically.
    .object({ made: run.nullable(), failed: run.nullable(), everyHours: z.number().nullable() })
    .nullable()
    .describe('The last one that was made, and the last that failed.'),
  alerts: z.array(alert).describe('Those that last, newest first.'),
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

/** The document without what follows from it. `receiver` is null where none serves: the store was read alone. */
export interface StatusFacts
  extends Omit<StatusDocument, 'well' | 'parts' | 'coverage' | 'comparison' | 'alerts'> {
  /** Why the current `earshot.config.ts` is rejected; null or absent when it is in effect. */
  rejectedConfig?: string | null;
  /** Of the last seven days. */
  coverage: readonly CoverageSummary[];
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: string | null;
  /** Active ones. */
  alerts: readonly Alert[];
}

/** The facts and their evaluation. */
export interface Status extends StatusFacts {
  /** One for each of `statusParts`, in that order. */
  parts: readonly PartStatus[];
}

/** Times ISO 8601 UTC; null is not known, or there is none. */
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

/** True when no part has a problem. */
export function isWell({ parts }: Pick<Status, 'parts'>): boolean {
  return parts.every(({ level }) => level === 'well' || level === 'unused');
}
