/** The private face: OData and JSON answers about what was received, as a Hono app that has opened nothing. */

import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { z } from 'zod';
import { AppError, errorText } from '../domain/app-error.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import { coverageSchema, readCoverage, toCoverageJson } from '../domain/coverage.ts';
import { jsonSchemaOf } from '../domain/json-rows.ts';
import type { Logger, NotificationLog } from '../domain/ports.ts';
import type { Products } from '../domain/products.ts';
import { type Status, statusSchema, toStatusJson } from '../domain/status.ts';
import type { SummaryReader } from '../domain/summaries.ts';
import { filterListBytesMax, filterListPath, listTooLarge } from '../filter/odata.ts';
import { hostInUrl } from '../http/network-address.ts';
import { statusOf } from '../http/problem.ts';
import { type ApiRoute, apiRoute, dateParameter, openApiDocument } from './api-route.ts';
import {
  apiProblem,
  askedUrl,
  forbidden,
  isODataPath,
  jsonAnswer,
  nothingThere,
  odataFailure,
  odataPath,
  odataRefusal,
  refusedMethod,
} from './errors.ts';
import { type Metrics, metricsContentType } from './metrics/metrics.ts';
import { notificationsRoute } from './notifications-route.ts';
import { answerFilterList, answerOData, odataPaths } from './odata-routes.ts';
import { productsRoute } from './products-route.ts';
import {
  createQueryLine,
  type QueryLine,
  type QueryLineOptions,
  queryLineDefaults,
} from './query-line.ts';
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
  const { products, notifications, summaries, newRequestId } = options;
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

  // That this answers says that the process lives and its event loop turns.
  app.get('/healthz', () => new Response('ok'));
  app.get('/readyz', () => readyAnswer(options.readiness));
  app.get('/metrics', async (c) =>
    c.body(await options.metrics.scrape(options.status), 200, {
      'Content-Type': metricsContentType,
    }),
  );

  const routes = [
    { route: notificationsRoute(notifications), line: notificationLine },
    { route: productsRoute(options), line: productLine },
    { route: summariesRoute(summaries), line: notificationLine },
    { route: coverageRoute(options), line: notificationLine },
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
    line(
      (signal) => answerOData(c, { products, requestId: newRequestId(), signal }),
      c.req.raw.signal,
    ),
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
        (signal) => answerFilterList(c, text, { products, requestId: newRequestId(), signal }),
        c.req.raw.signal,
      );
    },
  );
}

/** `/api/status`. */
function statusRoute(status: () => Promise<Status>): ApiRoute {
  return apiRoute({
    path: '/api/status',
    operationId: 'showStatus',
    summary: 'Whether all is well',
    description: 'How each part of this receiver stands, and what to do where it does not.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(statusSchema),
    respond: async () => ({ body: toStatusJson(await status()) }),
  });
}

const dayUs = 86_400_000_000;

const sinceDefaultUs = 7 * dayUs;

const windowDaysMax = 100;

const coverageQuery = z.strictObject({
  since: dateParameter.optional().describe('Hours since, ISO 8601; seven days back by default.'),
  until: dateParameter.optional().describe('Hours before this time; now by default.'),
  subscription: z.string().optional(),
});

/** `/api/coverage`. */
function coverageRoute(
  parts: Pick<ConsoleOptions, 'completeness' | 'products' | 'comparisonOff' | 'nowUs'>,
): ApiRoute {
  return apiRoute({
    path: '/api/coverage',
    operationId: 'showCoverage',
    summary: 'Whether all is here, hour by hour',
    description: `Hours are those of the events at the catalogue. At most ${windowDaysMax} days at a time.`,
    query: coverageQuery,
    answer: jsonSchemaOf(coverageSchema),
    respond: async ({ since, until, subscription }, _url, signal) => {
      const nowUs = parts.nowUs();
      const untilUs = Math.min(until ?? nowUs, nowUs);
      const sinceUs = since ?? untilUs - sinceDefaultUs;
      if (sinceUs >= untilUs || untilUs - sinceUs > windowDaysMax * dayUs) {
        throw new AppError(
          'invalid',
          `since must lie before until and now, by ${windowDaysMax} days at the most.`,
        );
      }
      const question = { sinceUs, untilUs, subscription, nowUs };
      const report = await readCoverage(parts, question, signal);
      return { body: toCoverageJson(report, parts.comparisonOff()) };
    },
  });
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

/** The answer for somebody without the right credentials; nothing for others. */
type LetIn = (incoming: IncomingMessage) => { readonly refusal?: Response };

interface GuardOptions {
  /** Null where there is no password: then only names of this machine are answered to. */
  letIn: LetIn | null;
  /** The host that the listener was told to listen on. */
  listenHost: string;
  newRequestId: () => string;
}

const wrongName =
  'Without a password this answers to localhost and its own address only. Use http://localhost, or set EARSHOT_CONSOLE_PASSWORD.';

const ownNames = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Returns the refusal for those who must log in, and for what a browser sends on behalf of another
 * site (403). Without a password, the Host must be a name of our own: a page whose name was made to
 * lead here (DNS rebinding) sends that name, and no page can choose another. With one, whether the receiver
 * is well may be asked without it, under any name.
 */
function createConsoleGuard({ letIn, listenHost, newRequestId }: GuardOptions) {
  const listenName = hostInUrl(listenHost).toLowerCase();
  return (incoming: IncomingMessage, path: string): Response | undefined => {
    const { host } = incoming.headers;
    if (isFromAnotherPage(incoming)) {
      const reason = 'Requests from pages of other sites are not answered.';
      return forbidden(path, reason, newRequestId());
    }
    if (letIn !== null) return healthPaths.includes(path) ? undefined : letIn(incoming).refusal;
    if (host === undefined) return undefined;
    const name = host.replace(/:\d*$/, '').toLowerCase();
    const address = hostInUrl((incoming.socket.localAddress ?? '').replace(/^::ffff:/, ''));
    if ([...ownNames, listenName, address].includes(name)) return undefined;
    return forbidden(path, wrongName, newRequestId());
  };
}

/** Browsers set both headers, and pages cannot. To Fetch Metadata another port of this machine is the same site. */
function isFromAnotherPage({ headers: { host, origin, 'sec-fetch-site': site } }: IncomingMessage) {
  if (typeof site === 'string' && !['same-origin', 'none'].includes(site)) return true;
  // Scheme aside, as a proxy in front may speak HTTPS. A page without an origin sends `null`.
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== host;
}

/**
 * Why no notification can be taken. writer: the thread that writes has ended, or does not answer. store: it
 * cannot write. certificate: there is none, or none that is valid now.
 */
export type UnreadyReason = 'writer' | 'store' | 'certificate';

/** All that is in the way; nothing when notifications are taken. Never rejects. */
export type Readiness = () => Promise<readonly UnreadyReason[]>;

/** Paths that answer without the password: what they say is of no use to others. */
const healthPaths: readonly string[] = ['/healthz', '/readyz'];

/** 200 `ready`, or 503 with the reasons, one a line. */
async function readyAnswer(readiness: Readiness): Promise<Response> {
  const reasons = await readiness();
  if (reasons.length === 0) return new Response('ready');
  return new Response(reasons.join('\n'), { status: 503 });
}
