/** `/api/status`: how this receiver stands, and whether all is well. */
import { z } from 'zod';
import { alertKinds, alertSeverities } from '../domain/alerts.ts';
import { AppError } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/coverage.ts';
import {
  comparedStates,
  hourStates,
  readCoverage,
  toCoverageJson,
} from '../domain/coverage-report.ts';
import { parseDate } from '../domain/dates.ts';
import type { Products } from '../domain/products.ts';
import { type Status, statusLevels, statusParts, toStatusJson } from '../domain/status.ts';
import { summaryRuleKinds } from '../domain/summaries.ts';
import { type ApiRoute, apiRoute, dateParameter, timeField } from './api-route.ts';

const count = z.int().min(0);

const bytes = z.number().min(0);

const moment = timeField.nullable();

const reason = z.string().nullable();

const part = z.enum(statusParts);

const receiver = z.object({
  startedAt: moment,
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
  indexBytes: bytes.describe('The product index; 0 without one.'),
  firstPosition: count,
  lastPosition: count,
  firstReceivedAt: moment,
  lastReceivedAt: moment.describe('The last delivery, one that was known already included.'),
  quarantined: count.describe('Bodies that are held.'),
  pruned: z
    .object({ position: count, receivedBefore: timeField, prunedAt: timeField })
    .nullable()
    .describe('How far the log was pruned; null when it never was.'),
});

const subscription = z.object({
  name: z.string(),
  state: z.enum(['running', 'paused', 'unfinished', 'absent']),
  pausedOnPurpose: z.boolean(),
  lastDeliveryAt: moment,
  pausesAt: moment.describe('When the catalogue pauses it, if nothing comes until then.'),
  cancelsAt: moment.describe('When the catalogue deletes it, if nothing comes until then.'),
});

const certificate = z.object({
  notAfter: moment.describe('Null while the first certificate is tried for.'),
  lifetimeSeconds: z.number().nullable(),
  lastAttemptAt: moment.describe('The last renewal; null with files of your own.'),
  lastSuccessAt: moment,
  lastFailure: reason.describe('Why the last renewal failed; null when it did not.'),
});

const counts = {
  expected: count.describe('Events that the catalogue shows since the subscription began.'),
  pushed: count.describe('Pushed within half an hour of the event.'),
  late: count.describe('Pushed later, or after the event had been recovered.'),
  recovered: count.describe('Never pushed; fetched and written into the log.'),
  missing: count.describe('Not in the log: expected without pushed, late and recovered.'),
};

const share = z.number().min(0).max(1).nullable();

/** The coverage of one subscription, as `/api/coverage` and `/api/status` have it. */
const coverageSummaryFields = {
  subscription: z.string(),
  ...counts,
  state: z
    .enum(comparedStates)
    .describe('Of the hours that are due. With `not-compared`, the counts say nothing.'),
  comparedHours: count,
  unknownHours: count.describe('Hours that are due, and not compared.'),
  pendingHours: count.describe('Hours that are due half an hour after their end.'),
  complete: share.describe('Of what is expected, the share that is in the log; null is not known.'),
  told: share.describe('The share that was pushed, in time or late.'),
  nextComparison: timeField
    .nullable()
    .describe('When the next hour is due; null when none is, or none is compared automatically.'),
};

const coverage = z.object(coverageSummaryFields);

const reader = z.object({
  name: z.string(),
  of: z.enum(['index', 'summaries', 'sink', 'tail']),
  position: count,
  behind: count.describe('Positions of the log that it has yet to read.'),
  unreadSince: moment.describe('When the first of them was received.'),
});

const sink = z.object({
  name: z.string(),
  isSetUp: z.boolean().nullable().describe('Whether earshot.config.ts has it.'),
  waiting: count,
  dead: count,
  oldestWaitingAt: moment,
  oldestLiveWaitingAt: moment.describe('The same without replays.'),
  lastError: reason.describe('Why the item that was tried last failed.'),
  fault: reason.describe('Why nothing can be handed over to it; null when it can.'),
});

const summaries = z.object({
  mode: z.enum(summaryRuleKinds),
  waiting: count,
  nextDueAt: moment,
  failed: count,
  requests: count.describe('Asked of the inference service in the last 24 hours.'),
  tokens: count.describe('Spent in the last 24 hours.'),
});

const run = z.object({
  file: z.string(),
  startedAt: timeField,
  endedAt: timeField,
  bytes: bytes.nullable(),
  lastPosition: count.nullable(),
  error: reason,
});

const alert = z.object({
  id: count,
  kind: z.enum(alertKinds),
  subject: z.string(),
  severity: z.enum(alertSeverities),
  cause: z.string(),
  evidence: z.array(z.string()),
  nextStep: z.string(),
  raisedAt: timeField,
});

/** Whether hours are compared automatically. */
const comparisonFields = z.object({
  automatic: z.boolean(),
  reason: z.string().nullable().describe('Why they are not; null when they are.'),
});

const statusFields = z.object({
  at: timeField.describe('When it was gathered: at most some seconds ago.'),
  version: z.string(),
  well: z.boolean().describe('Whether no part is at level warning or critical.'),
  parts: z
    .array(
      z.object({
        part,
        level: z.enum(statusLevels).describe('`unused`: turned off, or nothing to say.'),
        text: z.string(),
        nextStep: reason.describe('What to do; null where there is nothing to do.'),
      }),
    )
    .describe('How each part stands, in words.'),
  failures: z
    .array(z.object({ part, reason: z.string() }))
    .describe('Parts that could not be looked at. Their fields are null or empty.'),
  receiver: receiver.nullable(),
  log: log.nullable(),
  subscriptions: z.array(subscription),
  behindProxy: z.boolean().describe('Whether a proxy speaks HTTPS, and has the certificate.'),
  certificate: certificate.nullable().describe('Null behind a proxy, and before the first.'),
  coverage: z.array(coverage).describe('Of the last seven days.'),
  comparison: comparisonFields,
  readers: z.array(reader),
  sinks: z.array(sink),
  summaries: summaries.nullable(),
  disk: z
    .object({ freeBytes: bytes, totalBytes: bytes, reserveBytes: bytes })
    .nullable()
    .describe('With less than reserveBytes free, notifications are refused.'),
  backups: z
    .object({ made: run.nullable(), failed: run.nullable(), everyHours: z.number().nullable() })
    .nullable()
    .describe('The last one that was made, and the last that failed.'),
  alerts: z.array(alert).describe('Those that last, newest first.'),
});

/** Builds the row of the table. */
export function statusRoute(status: () => Promise<Status>): ApiRoute {
  return apiRoute({
    path: '/api/status',
    operationId: 'showStatus',
    summary: 'Whether all is well',
    description: 'How each part of this receiver stands, and what to do where it does not.',
    query: z.strictObject({}),
    answer: statusFields,
    headers: {},
    respond: async () => ({ body: toStatusJson(await status()) }),
  });
}

const dayUs = 86_400_000_000;

const sinceDefaultUs = 7 * dayUs;

const windowDaysMax = 100;

const percentiles = z
  .object({ count, p50: z.number(), p90: z.number(), p99: z.number(), max: z.number() })
  .nullable();

const coverageFields = z.object({
  since: timeField,
  until: timeField,
  comparison: comparisonFields,
  missing: count.describe('Of all subscriptions.'),
  subscriptions: z.array(
    z.object({
      ...coverageSummaryFields,
      hours: z.array(
        z.object({
          hour: timeField.describe("The hour's beginning."),
          ...counts,
          state: z.enum(hourStates),
        }),
      ),
      delays: z
        .object({
          sensingToPublication: percentiles,
          publicationToNotification: percentiles,
          notificationToReceipt: percentiles,
        })
        .nullable()
        .describe('In seconds, of what was received within the hours.'),
    }),
  ),
});

const query = z.strictObject({
  since: dateParameter.optional().describe('Hours since, ISO 8601; seven days back by default.'),
  until: dateParameter.optional().describe('Hours before this time; now by default.'),
  subscription: z.string().optional(),
});

/** Builds the row of the table. */
export function coverageRoute(parts: {
  completeness: CompletenessReader;
  products: Pick<Products, 'delays'>;
  comparisonOff: () => string | null;
  nowUs: () => number;
}): ApiRoute {
  return apiRoute({
    path: '/api/coverage',
    operationId: 'showCoverage',
    summary: 'Whether all is here, hour by hour',
    description: `Hours are those of the events at the catalogue. At most ${windowDaysMax} days at a time.`,
    query,
    answer: coverageFields,
    headers: {},
    respond: async ({ since, until, subscription }, _url, signal) => {
      const nowUs = parts.nowUs();
      const untilUs = Math.min(dateUs(until) ?? nowUs, nowUs);
      const sinceUs = dateUs(since) ?? untilUs - sinceDefaultUs;
      if (sinceUs >= untilUs || untilUs - sinceUs > windowDaysMax * dayUs) {
        throw new AppError(
          'invalid',
          `since must lie before until and now, by ${windowDaysMax} days at the most.`,
        );
      }
      const question = { sinceUs, untilUs, subscription, nowUs };
      const report = await readCoverage(parts, question, signal);
      return { body: toCoverageJson(report, parts.comparisonOff()) };
    },
  });
}

function dateUs(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseDate(text)?.us;
}
