/** The description of the API (OpenAPI 3.1), made from the table of routes that serves it. */
import { z } from 'zod';
import type { ApiRoute } from './api-route.ts';

/** An error as problem JSON (RFC 9457). */
const problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string().describe('What happened, why, and what to do next.'),
  errors: z.array(z.string()).optional().describe('One finding each.'),
  requestId: z.string().describe('The id under which the log has it.'),
});

const errorStatuses: Readonly<Record<number, string>> = {
  400: 'A parameter cannot be used as it is.',
  401: 'There is a password, and it did not come along.',
  403: 'The request came from a page of another site, or under a name that is not ours.',
  503: 'It cannot be answered at the moment. Retry-After says when to try again.',
};

/** Builds the document. `passwordNeeded` tells of Basic authentication. */
export function openApiDocument(
  routes: readonly ApiRoute[],
  { passwordNeeded }: { passwordNeeded: boolean },
): object {
  const login = { type: 'http', scheme: 'basic', description: 'The user name is `earshot`.' };
  return {
    openapi: '3.1.0',
    info: {
      title: 'earshot',
      version: '1',
      description:
        'What earshot has received. Times are ISO 8601, UTC. A page holds at most 1,000 rows; follow `next` to the end. Fields may be added; a reader must ignore those it does not know.',
    },
    paths: Object.fromEntries(routes.map((route) => [route.path, { get: operationOf(route) }])),
    components: {
      schemas: { Problem: schemaOf(problem, 'output') },
      ...(passwordNeeded ? { securitySchemes: { login } } : {}),
    },
    ...(passwordNeeded ? { security: [{ login: [] }] } : {}),
  };
}

function operationOf(route: ApiRoute): object {
  const headers = Object.entries(route.headers ?? {}).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ]);
  const errors = Object.entries(errorStatuses).map(([status, description]) => [
    status,
    {
      description,
      content: {
        'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
      },
    },
  ]);
  return {
    operationId: route.operationId,
    summary: route.summary,
    description: route.description,
    parameters: Object.entries(route.query.shape).map(([name, schema]) => parameter(name, schema)),
    responses: {
      200: {
        description: route.summary,
        headers: Object.fromEntries(headers),
        content: Object.fromEntries(
          Object.entries({ 'application/json': route.answer, ...route.otherAnswers }).map(
            ([type, schema]) => [type, { schema: schemaOf(schema, 'output') }],
          ),
        ),
      },
      ...Object.fromEntries(errors),
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
    // OpenAPI's own default for lists: the parameter is repeated; commas are taken as well.
    schema,
  };
}

function schemaOf(type: z.core.$ZodType, io: 'input' | 'output') {
  const { $schema: _, ...schema } = z.toJSONSchema(type, {
    io,
    // Fields may be added to answers: a client made from this must not refuse those.
    override: ({ jsonSchema }) => {
      if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
    },
  });
  return schema;
}
