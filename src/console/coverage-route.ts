/** `/api/coverage`: whether all that the catalogue published is here, hour by hour. */
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import { toCoverageJson } from '../domain/coverage-json.ts';
import { comparedStates, hourStates } from '../domain/coverage-report.ts';
import { parseDate } from '../domain/notification-date.ts';
import type { Products } from '../domain/products.ts';
import { readCoverage } from '../domain/read-coverage.ts';
import { type ApiRoute, apiRoute, dateParameter, timeField } from './api-route.ts';

const dayUs = 86_400_000_000;
const sinceDefaultUs = 7 * dayUs;
const windowDaysMax = 100;

const count = z.int().min(0);
const counts = {
  expected: count.describe('Events that the catalogue shows since the subscription began.'),
  pushed: count.describe('Pushed within half an hour of the event.'),
  late: count.describe('Pushed later, or after the event had been recovered.'),
  recovered: count.describe('Never pushed; fetched and written into the log.'),
  missing: count.describe('Not in the log: expected without pushed, late and recovered.'),
};
const share = z.number().min(0).max(1).nullable();

/** The coverage of one subscription, as `/api/coverage` and `/api/status` have it. */
export const coverageSummaryFields = {
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

/** Whether hours are compared automatically. */
export const comparisonFields = z.object({
  automatic: z.boolean(),
  reason: z.string().nullable().describe('Why they are not; null when they are.'),
});

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
