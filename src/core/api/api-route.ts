/** An API route: its parameters and answer, used by the server and the OpenAPI document. */
import { z } from 'zod';
import { maximumAge } from '../config/variables.ts';
import { AppError } from '../terms/app-error.ts';
import { dayUs, lostPlusAdvice, parseDate } from '../terms/dates.ts';

/** Answer of a route; `headers` are added to the usual ones. */
export interface ApiAnswer<Body = object> {
  body: Body;
  headers?: Record<string, string>;
}

export interface ApiRoute {
  path: `/api/${string}`;
  /** Operation name for generated clients. */
  operationId: string;
  summary: string;
  description: string;
  query: z.ZodObject;
  answer: z.ZodType;
  /** Media type of the answer; JSON by default. */
  answerType?: string;
  /** Other media types of the answer, each with its schema. */
  otherAnswers?: Readonly<Record<string, z.ZodType>>;
  /** Media types of answers that are plain text. */
  textAnswers?: readonly string[];
  /** Headers of an answer, with their descriptions. */
  headers?: Readonly<Record<string, string>>;
  /**
   * Answers a request; a stream as a whole response. Rejects with `invalid` when a parameter does not match its schema;
   * stops when the signal is aborted.
   */
  respond(url: URL, signal: AbortSignal, client: ApiClient): Promise<ApiAnswer | Response>;
}

export interface ApiClient {
  headers: Headers;
  /** Closes the connection without sending the rest of the answer. */
  disconnect(): void;
}

/** Parameters that may be repeated, or contain a list separated by commas. */
const listParameters: readonly string[] = ['event'];

/** Returns a route whose handler receives parsed parameters and returns the answer of its schema. */
export function apiRoute<
  Query extends z.ZodObject,
  Answer extends z.ZodType<object>,
  Other extends object = never,
>(
  row: Omit<ApiRoute, 'respond' | 'query' | 'answer' | 'otherAnswers'> & {
    query: Query;
    answer: Answer;
    otherAnswers?: Readonly<Record<string, z.ZodType<Other>>>;
    respond(
      query: z.output<Query>,
      url: URL,
      signal: AbortSignal,
      client: ApiClient,
    ): Promise<ApiAnswer<z.output<Answer> | Other> | Response>;
  },
): ApiRoute {
  return {
    ...row,
    respond: async (url, signal, client) =>
      row.respond(readParameters(row.query, url), url, signal, client),
  };
}

function readParameters<Query extends z.ZodObject>(schema: Query, url: URL): z.output<Query> {
  const names = [...new Set(url.searchParams.keys())];
  const texts = names.map((name) => {
    const all = url.searchParams.getAll(name);
    if (listParameters.includes(name)) return [name, all.flatMap((text) => text.split(','))];
    return [name, all.length === 1 ? all[0] : all];
  });
  const read = schema.safeParse(Object.fromEntries(texts));
  if (read.success) {
    const { since, until } = read.data as { since?: unknown; until?: unknown };
    if (typeof since !== 'number' || typeof until !== 'number' || since <= until) return read.data;
    throw new AppError('invalid', 'since must be before until.');
  }
  throw new AppError('invalid', 'A query parameter is invalid.', {
    advice: 'See /api/openapi.json.',
    details: read.error.issues.map(({ path, message }) => [...path, message].join(': ')),
  });
}

/**
 * Returns a URL with one parameter changed, for the next page. Blanks become `%20`: some clients (URI.js) take a plus sign
 * literally.
 */
export function withParameter(url: URL, name: string, value: string | number): string {
  const next = new URL(url);
  next.searchParams.set(name, String(value));
  next.search = next.search.replaceAll('+', '%20');
  return next.href;
}

/** Returns the rows of a page, from up to `limit + 1` rows read, and the URL of the next page. */
export function pageOf<Row>(
  rows: readonly Row[],
  { limit, url, parameter }: { limit: number; url: URL; parameter: string },
  keyOf: (row: Row) => number,
): { page: Row[]; next: string | null } {
  const page = rows.slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : undefined;
  return { page, next: last === undefined ? null : withParameter(url, parameter, keyOf(last)) };
}

/** Parameters and fields shared by several routes. */
export const limitParameter = z.coerce
  .number()
  .int()
  .min(1)
  .max(1_000)
  .default(100)
  .describe('Maximum number of rows per page, from 1 to 1,000.');

export const flagParameter = z.enum(['true', 'false']).default('false');

export const maxAgeParameter = maximumAge
  .optional()
  .describe(
    'Only products that were published at most this long after the end of their sensing, such as 30d or 36h, or whose dates are unknown.',
  );

export const positionParameter = z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER);

/** Parses a date, or date and time, to microseconds since 1970. */
export const dateParameter = z.string().transform((text, context) => {
  const date = parseDate(text);
  if (date !== null) return date.us;
  const advice = lostPlusAdvice(text);
  const message = `must be an ISO 8601 date, or date and time${advice === undefined ? '' : `. ${advice}`}`;
  context.addIssue({ code: 'custom', message });
  return z.NEVER;
});

/** Maximum period of a request for values by hour. */
export const periodDaysMax = 100;

/** Returns the period of a request; its default ends now. Throws `invalid` for an empty or too long period. */
export function periodOf(
  { since, until }: { since?: number | undefined; until?: number | undefined },
  { nowUs, backUs }: { nowUs: number; backUs: number },
): { sinceUs: number; untilUs: number } {
  const untilUs = Math.min(until ?? nowUs, nowUs);
  const sinceUs = since ?? untilUs - backUs;
  if (sinceUs < untilUs && untilUs - sinceUs <= periodDaysMax * dayUs) {
    return { sinceUs, untilUs };
  }
  throw new AppError(
    'invalid',
    `since must be before until and now, and at most ${periodDaysMax} days before them.`,
  );
}

export const nextField = z
  .url()
  .nullable()
  .describe('URL of the next page; null on the last page.');

/** An error as problem JSON (RFC 9457). */
const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe('What happened, why, and what to do next.'),
  errors: z
    .array(z.string())
    .optional()
    .describe('Findings about the request, one text for each finding.'),
  requestId: z.string().describe('Id of the request in the log of the receiver.'),
});

const errorStatuses: Readonly<Record<number, string>> = {
  400: 'A parameter is invalid.',
  401: 'The password is missing or wrong.',
  403: 'The request came from a page of another site, or the Host header is not allowed.',
  503: 'The query cannot be answered now: too many queries wait, it took more than 30 s, or there is no product index. Retry after the time in Retry-After.',
};

/** Parts of an OpenAPI document that describe the login. */
export const securitySchemes = {
  login: { type: 'http', scheme: 'basic', description: 'The user name is `earshot`.' },
};
export const security = [{ login: [] }];

/** Builds the OpenAPI document of the API below `base`. `passwordNeeded` adds Basic authentication. */
export function openApiDocument(
  routes: readonly ApiRoute[],
  { passwordNeeded, base }: { passwordNeeded: boolean; base: string },
): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'earshot',
      version: '1',
      description:
        'Notifications and products received by earshot. Times are ISO 8601, UTC. A page has at most 1,000 rows; follow `next` until it is null. Fields may be added: clients must ignore unknown ones.',
    },
    servers: [{ url: base }],
    paths: Object.fromEntries(routes.map((route) => [route.path, { get: operationOf(route) }])),
    components: {
      schemas: { Problem: schemaOf(problem, 'output') },
      ...(passwordNeeded ? { securitySchemes } : {}),
    },
    ...(passwordNeeded ? { security } : {}),
  };
}

/** Converts each value of a table. */
const mapped = <Value>(table: Readonly<Record<string, Value>>, convert: (value: Value) => object) =>
  Object.fromEntries(Object.entries(table).map(([name, value]) => [name, convert(value)]));

function operationOf(route: ApiRoute): object {
  const content = {
    'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
  };
  const texts = (route.textAnswers ?? []).map((type) => [type, z.string()]);
  const answers: Record<string, z.ZodType> = {
    [route.answerType ?? 'application/json']: route.answer,
    ...route.otherAnswers,
    ...Object.fromEntries(texts),
  };
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: route.description,
    parameters: Object.entries(route.query.shape).map(([name, schema]) => parameter(name, schema)),
    responses: {
      200: {
        description: route.summary,
        headers: mapped(route.headers ?? {}, (description) => ({
          description,
          schema: { type: 'string' },
        })),
        content: mapped(answers, (schema) => ({ schema: schemaOf(schema, 'output') })),
      },
      ...mapped(errorStatuses, (description) => ({ description, content })),
    },
  };
}

function parameter(name: string, type: z.core.$ZodType): object {
  const { description, ...schema } = schemaOf(type, 'input');
  return {
    name,
    in: 'query',
    required: false,
    ...(description === undefined ? {} : { description }),
    // The OpenAPI default for lists is a repeated parameter; commas are accepted as well.
    schema,
  };
}

function schemaOf(type: z.core.$ZodType, io: 'input' | 'output') {
  const { $schema: _, ...schema } = z.toJSONSchema(type, {
    io,
    // Fields may be added to answers: generated clients must not reject them.
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return schema;
}
