/**
 * The status of a receiver as one document, shown by `earshot status`, `/api/status` and the metrics. Times are
 * microseconds since 1970, UTC. Null: not known, or none.
 */

import { z } from 'zod';
import { evaluationSchema, isProblem, levels } from '../../core/terms/evaluation.ts';
import { toJson } from '../../core/terms/json-rows.ts';
import { alertKinds } from '../../core/terms/kinds.ts';
import type { Alert } from '../alerts/terms.ts';
import {
  type CoverageSummary,
  comparisonFields,
  coverageSummaryFields,
  toComparison,
  toSummary,
} from '../coverage/coverage.ts';
import { type EvaluatedSink, type SinkState, sinkSchema } from '../sinks/report.ts';
import {
  type EvaluatedSubscription,
  type SubscriptionState,
  subscriptionSchema,
} from '../subscriptions/state.ts';
import { summaryRuleKinds } from '../summary/terms.ts';

/** Parts that are evaluated and shown separately, in this order. */
export const statusParts = [
  'receiver',
  'log',
  'receivers',
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

const count = z.int().min(0);

const bytes = z.number().min(0);

const timeUs = z.number();

const momentUs = timeUs.nullable();

const reason = z.string().nullable();

const part = z.enum(statusParts);

const partStatus = z.object({ part, ...evaluationSchema.shape });

const receiver = z.object({
  startedAtUs: momentUs,
  pid: z.int().positive().nullable().describe('Process id of the receiver; null if not known.'),
  refusing: reason.describe(
    'Reason why the receiver refuses notifications; null while the receiver accepts notifications.',
  ),
  queue: z
    .object({ bytes, bytesMax: bytes })
    .nullable()
    .describe(
      'Bodies that are not on disk yet. Above bytesMax, the receiver answers pushes with 503.',
    ),
});

const log = z.object({
  usedBytes: bytes.describe('Size of the database file without free pages.'),
  freeBytes: bytes.describe(
    'Size of the free pages. New data uses the free pages before the file grows.',
  ),
  walBytes: bytes.describe('Size of the write-ahead log of the database.'),
  firstPosition: count,
  lastPosition: count,
  indexBytes: bytes.describe('Size of the product index; 0 without an index.'),
  quarantined: count.describe('Number of bodies that are still quarantined.'),
  firstReceivedAtUs: momentUs,
  lastReceivedAtUs: momentUs.describe('Time of the last push, including duplicates.'),
  pruned: z
    .object({ position: count, receivedBeforeUs: timeUs, prunedAtUs: timeUs })
    .nullable()
    .describe('Result of the last pruning; null if the log was never pruned.'),
});

const sharedReceiver = z.object({
  name: z.string(),
  isThis: z.boolean().describe('True for the receiver of this data directory.'),
  reportedAtUs: timeUs.describe('Time of its last report, which each sends every five seconds.'),
  lag: count.describe('Number of entries of the shared log that it had not applied then.'),
  refusing: reason.describe('Reason why it refuses notifications; null while it accepts them.'),
  fault: reason.describe('Reason why it applies no entries; null while it does.'),
});

const certificate = z.object({
  notAfterUs: momentUs.describe('End of the validity; null until the first certificate is issued.'),
  lifetimeUs: z.number().nullable(),
  lastAttemptAtUs: momentUs.describe(
    'Time of the last renewal attempt by earshot; null with EARSHOT_TLS=files.',
  ),
  lastSuccessAtUs: momentUs,
  lastFailure: reason.describe(
    'Reason why the last renewal failed; null if the renewal succeeded.',
  ),
});

const reader = z.object({
  name: z.string(),
  /** A part of earshot, or a command of the user (`tail`). */
  of: z.enum(['index', 'summaries', 'sink', 'records', 'tail']),
  position: count,
  behind: count.describe('Number of log positions that the reader has not read.'),
  unreadSinceUs: momentUs.describe(
    'Time of receipt of the oldest notification that the reader has not read.',
  ),
});

const summaries = z.object({
  /** Combined mode of all subscriptions: `each` if any has it. */
  mode: z.enum(summaryRuleKinds),
  waiting: count,
  requests: count.describe('Number of requests to the inference service in the last 24 hours.'),
  tokens: count.describe('Number of tokens in the last 24 hours.'),
  /** May be in the past. */
  dueAtUs: momentUs,
  refusedAnswer: z
    .object({ model: z.string(), refused: z.string(), answer: z.string() })
    .nullable()
    .describe('Last answer of a model that does not follow the required form; null if it does.'),
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
  ...evaluationSchema.shape,
  raisedAtUs: timeUs,
});

/** The status document, written by `toStatusJson`. */
export const statusSchema = z.object({
  atUs: timeUs.describe('Time of the status: at most a few seconds ago.'),
  version: z.string(),
  ok: z.boolean().describe('True if each part has the level ok.'),
  parts: z.array(partStatus).describe('Evaluation of each part.'),
  failures: z
    .array(z.object({ part, reason: z.string() }))
    .describe('Parts that could not be checked. The fields of these parts are null or empty.'),
  receiver: receiver.nullable(),
  log: log.nullable(),
  receivers: z
    .array(sharedReceiver)
    .nullable()
    .describe('Receivers of the shared log; null without a shared log.'),
  subscriptions: z.array(subscriptionSchema),
  hasEndpoint: z.boolean().describe('False if the receiver only reads queues.'),
  behindProxy: z
    .boolean()
    .describe('True if a reverse proxy terminates HTTPS and has the certificate.'),
  certificate: certificate
    .nullable()
    .describe('Null behind a proxy, and before the first certificate.'),
  coverage: z.array(z.object(coverageSummaryFields)).describe('Coverage of the last seven days.'),
  comparison: comparisonFields,
  readers: z.array(reader),
  sinks: z.array(sinkSchema),
  summaries: summaries.nullable(),
  disk: z
    .object({ freeBytes: bytes, totalBytes: bytes, reserveBytes: bytes })
    .nullable()
    .describe('With less free space than reserveBytes, the receiver refuses notifications.'),
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
export type SharedReceiverStatus = z.infer<typeof sharedReceiver>;
export type LogStatus = z.infer<typeof log>;
export type CertificateStatus = z.infer<typeof certificate>;
export type ReaderStatus = z.infer<typeof reader>;
export type SummaryStatus = z.infer<typeof summaries>;

/** Facts that are evaluated. `receiver` is null when no receiver runs: only the store was read. */
export interface StatusFacts
  extends Omit<
    StatusDocument,
    'ok' | 'parts' | 'coverage' | 'comparison' | 'alerts' | 'subscriptions' | 'sinks'
  > {
  subscriptions: readonly SubscriptionState[];
  sinks: readonly SinkState[];
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
export interface Status extends Omit<StatusFacts, 'subscriptions' | 'sinks'> {
  subscriptions: readonly (SubscriptionState & Pick<EvaluatedSubscription, 'evaluation'>)[];
  sinks: readonly EvaluatedSink[];
  /** Parts, in the order of `statusParts`. */
  parts: readonly PartStatus[];
}

/** Converts a status to JSON, with times as ISO 8601 UTC. */
export function toStatusJson(status: Status) {
  const { parts, subscriptions, sinks, coverage, comparisonOff, alerts } = status;
  return toJson(statusSchema, {
    ...status,
    ok: isOk(status),
    ...{ parts: [...parts], subscriptions: [...subscriptions], sinks: [...sinks] },
    coverage: coverage.map((one) => toSummary(one, comparisonOff)),
    comparison: toComparison(comparisonOff),
    alerts: [...alerts],
  });
}

/** Returns true when no part has a problem. */
export function isOk({ parts }: Pick<Status, 'parts'>): boolean {
  return !parts.some(isProblem);
}

/** Returns the overall state, or the most severe problem and the names of the other parts with problems. */
export function headline(status: Pick<Status, 'parts'>): string {
  if (isOk(status)) return 'Everything is ok.';
  const [worst, ...others] = worstFirst(status);
  const also = others.filter(({ part }) => part !== 'alerts').map(({ part }) => part);
  const rest = also.length === 0 ? '' : ` Also not ok: ${also.join(', ')}.`;
  return `${worst?.text ?? ''}${rest}`;
}

/** Returns the parts with problems, the most severe first. */
export function worstFirst({ parts }: Pick<Status, 'parts'>): PartStatus[] {
  return parts
    .filter(isProblem)
    .toSorted((a, b) => levels.indexOf(a.level) - levels.indexOf(b.level));
}
