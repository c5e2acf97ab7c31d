/** `/api/timeliness`: delays of the received notifications, by hour and by collection. */
import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  periodDaysMax,
  periodOf,
} from '../../core/api/api-route.ts';
import { dayUs } from '../../core/terms/dates.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import {
  delayFields,
  delaysInSeconds,
  type Products,
  periodDelayFields,
  periodDelaysInSeconds,
} from '../../filter/products.ts';
import { lagHeader, lagHeaders } from '../products/route.ts';

const query = z.strictObject({
  since: dateParameter
    .optional()
    .describe('Start of the period of receipt, ISO 8601. The default is 24 hours before `until`.'),
  until: dateParameter.optional().describe('End of the period, ISO 8601. The default is now.'),
  subscription: z.string().optional(),
  collection: z.string().optional().describe('Only products of this collection.'),
});

const answer = z.object({
  sinceUs: z.number(),
  untilUs: z.number(),
  total: z.object(periodDelayFields).describe('Delays of the whole period, in seconds.'),
  hours: z
    .array(z.object({ hourUs: z.number().describe('Start of the hour.'), ...delayFields }))
    .describe('Delays by hour of receipt, in seconds. Hours without notifications are absent.'),
  collections: z
    .array(
      z.object({
        collection: z.string().nullable().describe('Null for products of no known collection.'),
        ...delayFields,
      }),
    )
    .describe('Delays by collection, in seconds.'),
});

export function timelinessRoute(parts: { products: Products; nowUs: () => number }): ApiRoute {
  const { products, nowUs } = parts;
  return apiRoute({
    path: '/api/timeliness',
    operationId: 'showTimeliness',
    summary: 'Delays from sensing to receipt, by hour and by collection',
    description: `Percentiles are nearest ranks, within 1 %. Recovered notifications have no NotificationDate and count only for the first stage; deleted and modified products count only for the last one. Negative delays are possible: the clocks disagree. A request can cover at most ${periodDaysMax} days.`,
    query,
    answer: jsonSchemaOf(answer),
    headers: {
      [lagHeader]: 'Number of notifications not indexed yet. Absent when there are none.',
    },
    respond: async ({ since, until, subscription, collection }, _url, signal) => {
      const period = periodOf({ since, until }, { nowUs: nowUs(), backUs: dayUs });
      // Read first: if the index catches up meanwhile, the answer is newer than the header states.
      const headers = await lagHeaders(products);
      const found = await products.timeliness({ ...period, subscription, collection }, signal);
      const shown = found.collections.filter(
        (one) => collection === undefined || one.collection === collection,
      );
      const body = toJson(answer, {
        ...period,
        total: periodDelaysInSeconds(found.total),
        hours: found.hours.map(({ hourUs, ...delays }) => ({
          hourUs,
          ...delaysInSeconds(delays),
        })),
        collections: shown.map(({ collection: name, ...delays }) => ({
          collection: name,
          ...delaysInSeconds(delays),
        })),
      });
      return { body, headers };
    },
  });
}
