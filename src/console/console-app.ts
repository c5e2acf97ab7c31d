/** The private face: OData and JSON answers about what was received, as a Hono app that has opened nothing. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { AppError, errorText } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import type { Logger, NotificationLog } from '../domain/ports.ts';
import type { Products } from '../domain/products.ts';
import type { Status } from '../domain/status.ts';
import type { SummaryReader } from '../domain/summaries.ts';
import { filterListBytesMax, filterListPath, listTooLarge } from '../filter/odata/filter-list.ts';
import { statusOf } from '../http/problem.ts';
import type { ApiRoute } from './api-route.ts';
import { askedUrl } from './asked-url.ts';
import {
  apiProblem,
  isODataPath,
  nothingThere,
  odataFailure,
  odataPath,
  odataRefusal,
  refusedMethod,
} from './console-errors.ts';
import { createConsoleGuard, type GuardOptions } from './console-guard.ts';
import { coverageRoute } from './coverage-route.ts';
import { healthAnswer, type Readiness, readyAnswer } from './health-routes.ts';
import { jsonAnswer } from './json-answer.ts';
import { type Metrics, metricsContentType } from './metrics/metrics.ts';
import { notificationsRoute } from './notifications-route.ts';
import { answerFilterList, answerOData, odataPaths } from './odata-routes.ts';
import { openApiDocument } from './open-api.ts';
import { productsRoute } from './products-route.ts';
import {
  createQueryLine,
  type QueryLine,
  type QueryLineOptions,
  queryLineDefaults,
} from './query-line.ts';
import { statusRoute } from './status-route.ts';
import { summariesRoute } from './summaries-route.ts';

export interface ConsoleOptions extends GuardOptions {
  products: Products;
  notifications: NotificationLog;
  summaries: SummaryReader;
  completeness: CompletenessReader;
  /** The beginning of download URLs. */
  catalogueUrl: string;
  status: () => Promise<Status>;
  /** Why hours are not compared automatically; null when they are. */
  comparisonOff: () => string | null;
  metrics: Pick<Metrics, 'scrape'>;
  readiness: Readiness;
  nowUs: () => number;
  log: Logger;
  limits?: Partial<QueryLineOptions>;
}

/** For what is made ready beside the questions: it is to be had when those have to wait. */
const atOnce: QueryLine = (answer, signal) => answer(signal);

type Environment = { Bindings: HttpBindings };

/** Beside what every listener sets: no page of another site gets hold of an answer. There are no CORS headers. */
const sameOrigin = ['Cross-Origin-Resource-Policy', 'same-origin'] as const;

/** Builds the app. Nothing in it changes anything: GET and HEAD, and a POST that asks by list. */
export function createConsoleApp(options: ConsoleOptions): Hono<Environment> {
  const { products, notifications, summaries, completeness, nowUs, newRequestId } = options;
  const { comparisonOff } = options;
  const limits = { ...queryLineDefaults, ...options.limits };
  // Each is answered by a thread of its own: neither waits for the other.
  const [notificationLine, productLine] = [createQueryLine(limits), createQueryLine(limits)];
  const guard = createConsoleGuard(options);
  const app = new Hono<Environment>();

  app.use(async (c, next) => {
    const refusal = guard(c.env.incoming, c.req.path) ?? refusedMethod(c.req, newRequestId);
    if (refusal === undefined) await next();
    else c.res = refusal;
    c.header(...sameOrigin);
  });

  addODataRoutes(app, { products, line: productLine, newRequestId });

  app.get('/healthz', () => healthAnswer());
  app.get('/readyz', () => readyAnswer(options.readiness));
  app.get('/metrics', async (c) =>
    c.body(await options.metrics.scrape(options.status), 200, {
      'Content-Type': metricsContentType,
    }),
  );

  const routes = [
    { route: notificationsRoute(notifications), line: notificationLine },
    {
      route: productsRoute({ products, summaries, catalogueUrl: options.catalogueUrl }),
      line: productLine,
    },
    { route: summariesRoute(summaries), line: notificationLine },
    {
      route: coverageRoute({ completeness, products, comparisonOff, nowUs }),
      line: notificationLine,
    },
    { route: statusRoute(options.status), line: atOnce },
  ];
  for (const { route, line } of routes) app.get(route.path, (c) => answerApi(route, line, c));
  const table = routes.map(({ route }) => route);
  const passwordNeeded = options.letIn !== null;
  app.get('/api/openapi.json', (c) => c.json(openApiDocument(table, { passwordNeeded })));

  const paths = { paths: pathsOf(table) };
  for (const path of ['/', '/api']) app.get(path, (c) => c.json(paths));

  app.notFound((c) => nothingThere(c.req.path, newRequestId()));
  app.onError((thrown, c) => {
    const gone = c.req.raw.signal.aborted;
    const error = gone ? new AppError('cancelled', 'The client closed the connection.') : thrown;
    const requestId = newRequestId();
    logFailure(error, { requestId, path: c.req.path }, options.log);
    return isODataPath(c.req.path) ? odataFailure(error, requestId) : apiProblem(error, requestId);
  });
  return app;
}

/** The catalogue's query service: GET, and the POST that queries by list. */
function addODataRoutes(
  app: Hono<Environment>,
  {
    products,
    line,
    newRequestId,
  }: Pick<ConsoleOptions, 'products' | 'newRequestId'> & { line: QueryLine },
): void {
  app.get(`${odataPath}/*`, (c) =>
    line((signal) => answerOData(c, newRequestId(), { products, signal }), c.req.raw.signal),
  );

  app.post(
    `${odataPath}${filterListPath}`,
    bodyLimit({
      maxSize: filterListBytesMax,
      onError: () => odataRefusal(listTooLarge, newRequestId()),
    }),
    async (c) => {
      const text = await c.req.text();
      return line(
        (signal) => answerFilterList(c, text, newRequestId(), { products, signal }),
        c.req.raw.signal,
      );
    },
  );
}

/** Each path with its method and what it answers with. */
function pathsOf(table: readonly ApiRoute[]) {
  const get = (path: string, summary: string) => ({ method: 'GET', path, summary });
  return [
    get('/', 'This list'),
    get('/api', 'This list'),
    get('/api/openapi.json', 'Description of the API (OpenAPI 3.1)'),
    ...table.map(({ path, summary }) => get(path, summary)),
    ...odataPaths,
    get('/healthz', 'Whether the process lives'),
    get('/readyz', 'Whether notifications are accepted'),
    get('/metrics', 'Metrics for Prometheus'),
  ];
}

function answerApi(route: ApiRoute, line: QueryLine, context: Context): Promise<Response> {
  return line(async (signal) => {
    const accept = context.req.header('accept') ?? '';
    const { body, headers = {} } = await route.respond(askedUrl(context), signal, accept);
    return jsonAnswer(body, headers);
  }, context.req.raw.signal);
}

function logFailure(err: Error, fields: { requestId: string; path: string }, log: Logger): void {
  const status = statusOf(err);
  if (status < 500) log.debug({ ...fields, status, reason: errorText(err) }, 'query refused');
  else log.error({ ...fields, status, err }, 'query failed');
}
