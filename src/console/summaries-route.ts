/** `/api/summaries`: what was written about what arrived. */
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

/** A text as it stands beside a product. Texts are plain: escape them where markup is read. */
export const textField = z.object({
  text: z.string().describe('Plain text.'),
  model: z.string().nullable().describe('Null where it was made of the facts alone.'),
  verified: z.boolean().describe('Whether all that it states was found in the facts.'),
  createdAt: timeField,
});

/** The fields of the command line's JSON rows, in their order. */
const summaryFields = z.object({
  kind: z.enum(summaryKinds),
  productId: z.string().nullable().describe('Null for a digest.'),
  productName: z.string().nullable(),
  text: z.string().nullable().describe('Plain text; null while it has not been looked at.'),
  model: z.string().nullable().describe('Null where the text was made of the facts alone.'),
  verified: z.boolean().nullable().describe('Whether all that it states was found in the facts.'),
  createdAt: timeField.nullable(),
  error: z.string().nullable().describe('Why there is no text of the model, or not yet.'),
  id: z.int(),
  state: z.enum(summaryStates),
  subscription: z.string().nullable().describe('The subscription that called for it.'),
  doubts: z.array(z.string()).describe('What is in the text, but not in the facts.'),
  attempts: z.int(),
  requestedAt: timeField,
  nextTryAt: timeField.nullable(),
  receivedFrom: timeField
    .nullable()
    .describe('A digest tells of what was received from this time on,'),
  receivedUntil: timeField.nullable().describe('and before this one.'),
  collection: z.string().nullable(),
  area: z.string().nullable(),
  filter: z.string().nullable().describe('Only what matches this expression.'),
});

const query = z.strictObject({
  kind: z.enum(summaryKinds).optional(),
  state: z.enum(summaryStates).optional(),
  productId: z.string().optional(),
  subscription: z.string().optional(),
  verified: z
    .enum(['true', 'false'])
    .optional()
    .describe('`false`: only texts that state something the facts do not have.'),
  since: dateParameter.optional().describe('Asked for since, ISO 8601, included.'),
  until: dateParameter.optional().describe('Asked for until, ISO 8601, excluded.'),
  before: positionParameter.optional().describe('Only earlier ones than this id.'),
  limit: limitParameter,
});

/** Builds the row of the table. */
export function summariesRoute(summaries: Pick<SummaryReader, 'find'>): ApiRoute {
  return apiRoute({
    path: '/api/summaries',
    operationId: 'listSummaries',
    summary: 'Texts about what arrived',
    description:
      'Newest first, page by page: texts about products and digests, and why one is missing or put off.',
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
