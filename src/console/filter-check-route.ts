/** `/api/filter/check`: findings about a filter, and completions at a position in it. */
import { z } from 'zod';
import { isAppError } from '../domain/app-error.ts';
import { entities } from '../domain/filter-tree.ts';
import type { Facets, Products } from '../domain/products.ts';
import { minuteUs } from '../domain/time-units.ts';
import { checkFilter } from '../filter/check.ts';
import { completeFilter } from '../filter/complete.ts';
import { excerptOf, toFindingJson } from '../filter/finding.ts';
import { printFilter } from '../filter/print.ts';
import { type ApiRoute, apiRoute, positionParameter } from './api-route.ts';

const query = z.strictObject({
  filter: z
    .string()
    .default('')
    .describe('Filter expression; a filter with errors is answered, too.'),
  entity: z.enum(entities).default('Products').describe('Entity of the filter.'),
  position: positionParameter
    .optional()
    .describe('Position in the filter, in UTF-16 units: the answer has completions for it.'),
});

const findingField = z.object({
  severity: z.enum(['error', 'warning']),
  code: z.string(),
  message: z.string(),
  expected: z.string().nullable().describe('Syntax that is valid at this position.'),
  hint: z.string().nullable().describe('Suggested correction.'),
  start: z.int().describe('Position in the filter, in UTF-16 units.'),
  end: z.int().describe('End of the finding, exclusive.'),
  excerpt: z
    .object({ before: z.string(), marked: z.string(), after: z.string() })
    .describe('Part of the filter around the finding, printable and in one line.'),
});

const completionField = z.object({
  label: z.string(),
  detail: z.string(),
  text: z.string().describe('Text that replaces the filter from `start` to `end`.'),
  start: z.int(),
  end: z.int(),
  caret: z.int().describe('Position in `text` at which typing continues.'),
});

/** Fields of `earshot filter check --json`, with excerpts and completions. */
const answer = z.object({
  valid: z.boolean(),
  entity: z.enum(entities),
  canonical: z
    .string()
    .nullable()
    .describe('Filter in a normalized form; null if the filter is invalid.'),
  findings: z.array(findingField),
  completions: z.array(completionField).describe('Empty without `position`.'),
});

/** Returns the route. */
export function filterCheckRoute(parts: {
  products: Pick<Products, 'facets'>;
  nowUs: () => number;
}): ApiRoute {
  const values = receivedValues(parts);
  return apiRoute({
    path: '/api/filter/check',
    operationId: 'checkFilter',
    summary: 'Findings about a filter, and completions',
    description:
      'Errors and warnings, as `earshot filter check` reports them. The status is 200 also for a filter with errors.',
    query,
    answer,
    respond: async ({ filter, entity, position }, _url, signal) => {
      const { tree, findings } = checkFilter(filter, entity);
      const valid = !findings.some(({ severity }) => severity === 'error');
      const normalized = tree === null ? '' : printFilter(tree);
      const completions =
        position === undefined
          ? []
          : completeFilter(filter, position, {
              entity,
              nowUs: parts.nowUs(),
              values: await values(signal),
            });
      const shown = findings.map((one) => ({
        ...toFindingJson(one),
        excerpt: excerptOf(filter, one),
      }));
      const canonical = valid ? normalized : null;
      return { body: { valid, entity, canonical, findings: shown, completions } };
    },
  });
}

/** Attributes whose received values are counted, and the counted property. */
const countedAttributes = {
  productType: 'productType',
  processingLevel: 'processingLevel',
  orbitDirection: 'orbitDirection',
  tileId: 'tile',
} as const satisfies Record<string, keyof Facets['values']>;

const keptUs = minuteUs;

/** Returns a function that resolves with frequent values of attributes, read at most once a minute. */
function receivedValues({ products, nowUs }: Parameters<typeof filterCheckRoute>[0]) {
  let known: Record<string, string[]> = {};
  let readAtUs = Number.NEGATIVE_INFINITY;
  return async (signal: AbortSignal): Promise<Record<string, string[]>> => {
    if (nowUs() - readAtUs < keptUs) return known;
    try {
      const { values } = await products.facets({ entity: 'Products', filter: null }, signal);
      known = Object.fromEntries(
        Object.entries(countedAttributes).map(([attribute, field]) => [
          attribute,
          (values[field] ?? []).map(({ value }) => value),
        ]),
      );
    } catch (error) {
      // Without an index, there are completions without values.
      if (!isAppError(error, 'unavailable')) throw error;
    }
    readAtUs = nowUs();
    return known;
  };
}
