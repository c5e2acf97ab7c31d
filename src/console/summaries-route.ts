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

const modelField = z
  .string()
  .nullable()
  .describe('Language model; null if the text is from the template.');

const factsField = z
  .record(z.string(), z.string())
  .describe('Values by name, also those that the text does not contain.');

/** Summary of a product. Texts are plain: escape them in markup. */
export const textField = z.object({
  text: z.string().describe('Plain text.'),
  model: modelField,
  facts: factsField,
  createdAt: timeField,
});

/** Fields of the JSON rows of the command line, in the same order. */
const summaryFields = z.object({
  kind: z.enum(summaryKinds),
  productId: z.string().nullable().describe('Id of the product; null for a digest.'),
  productName: z.string().nullable(),
  text: z.string().nullable().describe('Plain text; null before the first attempt.'),
  model: modelField,
  facts: factsField.nullable(),
  createdAt: timeField.nullable(),
  reason: z
    .string()
    .nullable()
    .describe(
      'Why the summary waits, or why the text is from the template; null without a reason.',
    ),
  id: z.int(),
  state: z.enum(summaryStates),
  subscription: z
    .string()
    .nullable()
    .describe('Name of the subscription that requested the summary.'),
  requestedAt: timeField,
  nextTryAt: timeField.nullable(),
  receivedFrom: timeField
    .nullable()
    .describe('Start of the period of a digest, by time of the first receipt, inclusive.'),
  receivedUntil: timeField
    .nullable()
    .describe('End of the period of a digest, by time of the first receipt, exclusive.'),
  filter: z.string().nullable().describe('Filter expression of a digest.'),
});

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
    answer: z.object({ summaries: z.array(summaryFields), next: nextField }),
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
