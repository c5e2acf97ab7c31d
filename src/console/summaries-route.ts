/** `/api/summaries`: summaries of products, and digests. */
import { z } from 'zod';
import { timeField } from '../domain/json-rows.ts';
import {
  type SummaryReader,
  summaryKinds,
  summaryStates,
  toSummaryJson,
} from '../domain/summaries.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from './api-route.ts';
import { collect } from './notifications-route.ts';

/** Summary of a product. Texts are plain: escape them in markup. */
export const textField = z.object({
  text: z.string().describe('Plain text.'),
  model: z.string().nullable().describe('Null if the text was generated from the facts alone.'),
  verified: z.boolean().describe('True if all its statements were found in the facts.'),
  createdAt: timeField,
});

/** Fields of the JSON rows of the command line, in the same order. */
const summaryFields = z.object({
  kind: z.enum(summaryKinds),
  productId: z.string().nullable().describe('Null for a digest.'),
  productName: z.string().nullable(),
  text: z.string().nullable().describe('Plain text; null before the first attempt.'),
  model: z.string().nullable().describe('Null if the text was generated from the facts alone.'),
  verified: z.boolean().nullable().describe('True if all its statements were found in the facts.'),
  createdAt: timeField.nullable(),
  error: z.string().nullable().describe('Why there is no text of the language model, or not yet.'),
  id: z.int(),
  state: z.enum(summaryStates),
  subscription: z.string().nullable().describe('Subscription that caused it.'),
  doubts: z.array(z.string()).describe('Statements of the text that were not found in the facts.'),
  attempts: z.int(),
  requestedAt: timeField,
  nextTryAt: timeField.nullable(),
  receivedFrom: timeField
    .nullable()
    .describe('Start of the window of a digest (time of receipt, inclusive).'),
  receivedUntil: timeField
    .nullable()
    .describe('End of the window of a digest (time of receipt, exclusive).'),
  collection: z.string().nullable(),
  area: z.string().nullable(),
  filter: z.string().nullable().describe('Filter expression of a digest.'),
});

const query = z.strictObject({
  kind: z.enum(summaryKinds).optional(),
  state: z.enum(summaryStates).optional(),
  productId: z.string().optional(),
  subscription: z.string().optional(),
  verified: z
    .enum(['true', 'false'])
    .optional()
    .describe('`false`: only texts with statements that were not found in the facts.'),
  since: dateParameter.optional().describe('Requested since, ISO 8601, inclusive.'),
  until: dateParameter.optional().describe('Requested until, ISO 8601, exclusive.'),
  before: positionParameter.optional().describe('Only ids below this one.'),
  limit: limitParameter,
});

/** Returns the route. */
export function summariesRoute(summaries: Pick<SummaryReader, 'find'>): ApiRoute {
  return apiRoute({
    path: '/api/summaries',
    operationId: 'listSummaries',
    summary: 'Summaries of products, and digests',
    description: 'Newest first, page by page, with the reason for a missing or postponed text.',
    query,
    answer: z.object({ summaries: z.array(summaryFields), next: nextField }),
    respond: async ({ verified, since, until, before, limit, ...same }, url, signal) => {
      const found = summaries.find({
        ...same,
        verified: verified === undefined ? undefined : verified === 'true',
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
