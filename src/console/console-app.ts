/** The private face: OData and JSON answers about what was received, as a Hono app that has opened nothing. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { AppError } from '../domain/app-error.ts';
import type { Logger, NotificationLog } from '../domain/ports.ts';
import type { Products } from '../domain/products.ts';
import { statusOf } from '../http/problem.ts';
import type { ApiRoute } from './api-route.ts';
import { askedUrl } from './asked-url.ts';
import { apiProblem, odataFailure } from './console-errors.ts';
import { createConsoleGuard, type GuardOptions } from './console-guard.ts';
import { jsonAnswer } from './json-answer.ts';
import { notificationsRoute } from './notifications-route.ts';
import { answerOData, odataPath } from './odata-routes.ts';
import { openApiDocument } from './open-api.ts';
import { productsRoute } from './products-route.ts';
import { createQueryLine, type QueryLineOptions, queryLineDefaults } from './query-line.ts';

export interface ConsoleOptions extends GuardOptions {
  products: Products;
  notifications: NotificationLog;
  log: Logger;
  limits?: Partial<QueryLineOptions>;
}

type Environment = { Bindings: HttpBindings };

const allowed = 'GET, HEAD';

/**
 * What is behind it is not for everybody: answers are kept by nobody, read as nothing but what they
 * are, and handed to no page of another site. There are no CORS headers.
 */
const safetyHeaders = {
  'Cache-Control': 'no-store',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'X-Content-Type-Options': 'nosniff',
};

/** Builds the app. Nothing in it changes anything: GET and HEAD only. */
export function createConsoleApp(options: ConsoleOptions): Hono<Environment> {
  const { products, notifications, newRequestId } = options;
  const line = createQueryLine({ ...queryLineDefaults, ...options.limits });
  const guard = createConsoleGuard(options);
  const app = new Hono<Environment>();

  app.use(async (c, next) => {
    const refusal = guard(c.env.incoming) ?? refusedMethod(c, newRequestId);
    if (refusal === undefined) await next();
    else c.res = refusal;
    for (const [name, value] of Object.entries(safetyHeaders)) c.header(name, value);
  });

  app.get(`${odataPath}/*`, (c) => answerOData(c, { products, line, newRequestId }));

  const routes = [notificationsRoute(notifications, line), productsRoute(products, line)];
  for (const route of routes) app.get(route.path, (c) => answerApi(route, c));
  const passwordNeeded = options.letIn !== null;
  app.get('/api/openapi.json', (c) => c.json(openApiDocument(routes, { passwordNeeded })));

  app.notFound(() => apiProblem(new AppError('not_found', wherePathsLead), newRequestId()));
  app.onError((error, c) => {
    const requestId = newRequestId();
    logFailure(error, { requestId, path: c.req.path }, options.log);
    return c.req.path.startsWith(odataPath)
      ? odataFailure(error, requestId)
      : apiProblem(error, requestId);
  });
  return app;
}

const wherePathsLead =
  'There is nothing here. What there is: /api/openapi.json, /odata/v1/Products, /odata/v1/DeletedProducts.';

async function answerApi(route: ApiRoute, context: Context): Promise<Response> {
  const { body, headers = {} } = await route.respond(askedUrl(context));
  return jsonAnswer(body, headers);
}

function refusedMethod(context: Context, newRequestId: () => string): Response | undefined {
  if (['GET', 'HEAD'].includes(context.req.method)) return undefined;
  const refusal = new AppError('wrong_method', `Use one of ${allowed}.`);
  const response = apiProblem(refusal, newRequestId());
  response.headers.set('Allow', allowed);
  return response;
}

function logFailure(err: Error, fields: { requestId: string; path: string }, log: Logger): void {
  const status = statusOf(err);
  if (status < 500) log.debug({ ...fields, status, reason: err.message }, 'query refused');
  else log.error({ ...fields, status, err }, 'query failed');
}
