/** `/api/status`: how this receiver stands, and whether all is well. */
import { z } from 'zod';
import { jsonSchemaOf } from '../domain/api-json.ts';
import { AppError } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/coverage.ts';
import { coverageSchema, readCoverage, toCoverageJson } from '../domain/coverage-report.ts';
import { parseDate } from '../domain/dates.ts';
import type { Products } from '../domain/products.ts';
import { type Status, statusSchema, toStatusJson } from '../domain/status.ts';
import { type ApiRoute, apiRoute, dateParameter } from './api-route.ts';

/** Builds the row of the table. */
export function statusRoute(status: () => Promise<Status>): ApiRoute {
  return apiRoute({
    path: '/api/status',
    operationId: 'showStatus',
    summary: 'Whether all is well',
    description: 'How each part of this receiver stands, and what to do where it does not.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(statusSchema),
    headers: {},
    respond: async () => ({ body: toStatusJson(await status()) }),
  });
}

const dayUs = 86_400_000_000;

const sinceDefaultUs = 7 * dayUs;

const windowDaysMax = 100;

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
    answer: jsonSchemaOf(coverageSchema),
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
