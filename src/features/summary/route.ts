/** `/api/summaries`: summaries of products, and digests. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import { summaryKinds, summaryStates } from '../../core/terms/kinds.ts';
import { summarySchema, toSummaryJson } from '../../core/terms/read-models.ts';
import { collect } from '../notifications/route.ts';
import type { SummaryReader } from './terms.ts';

const query = z.strictObject({
  kind: z.enum(summaryKinds).optional(),
  state: z.enum(summaryStates).optional(),
  productId: z.string().optional(),
  subscription: z.string().optional(),
  since: dateParameter
    .optional()
    .describe('Start of the time range, by time of the request, inclusive, ISO 8601.'),
  until: dateParameter
    .optional()
    .describe('End of the time range, by time of the request, exclusive, ISO 8601.'),
  before: positionParameter.optional().describe('Only summaries with a lower id.'),
  limit: limitParameter,
});

/** Returns the route. */
export function summariesRoute(summaries: Pick<SummaryReader, 'find'>): ApiRoute {
  return apiRoute({
    path: '/api/summaries',
    operationId: 'listSummaries',
    summary: 'Summaries of products, and digests',
    description: 'Pages of summaries, the newest first, with the reason for a missing text.',
    query,
    answer: z.object({ summaries: z.array(jsonSchemaOf(summarySchema)), next: nextField }),
    respond: async ({ since, until, before, limit, ...same }, url, signal) => {
      const found = summaries.find({
        ...same,
        sinceUs: since,
        untilUs: until,
        beforeId: before,
        limit: limit + 1,
      });
      const rows = await collect(found, signal);
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, ({ id }) => id);
      return { body: { summaries: page.map(toSummaryJson), next } };
    },
  });
}
