/**
 * The app of the private listener: OData and JSON answers about received notifications, as a Hono app. It opens
 * nothing itself.
 */

import type { IncomingMessage } from 'node:http';
import { type Context, Hono, type HonoRequest } from 'hono';
import { compress } from 'hono/compress';
import { z } from 'zod';
import { coverageSchema, readCoverage, toCoverageJson } from '../../features/coverage/coverage.ts';
import { createLiveFeed, type LiveLimits, liveRoute } from '../../features/live/feed.ts';
import { footprintsRoute } from '../../features/map/footprints-route.ts';
import { type Metrics, metricsContentType } from '../../features/metrics/metrics.ts';
import { notificationRoute, notificationsRoute } from '../../features/notifications/route.ts';
import { addODataRoutes, odataPaths } from '../../features/odata/routes.ts';
import { productsRoute } from '../../features/products/route.ts';
import { addStacRoutes, stacPaths } from '../../features/stac/routes.ts';
import {
  alertsRoute,
  quarantineRoute,
  subscriptionsRoute,
} from '../../features/status/operation-routes.ts';
import { type Status, statusSchema, toStatusJson } from '../../features/status/status.ts';
import { summariesRoute } from '../../features/summary/route.ts';
import { timelinessRoute } from '../../features/timeliness/route.ts';
import { hostInUrl } from '../http/network-address.ts';
import { statusOf } from '../http/problem.ts';
import { navigation } from '../page/layout.ts';
import type { PageParts } from '../page/page-route.ts';
import { addPages, isPagePath } from '../page/pages.ts';
import { AppError, errorText } from '../terms/app-error.ts';
import { jsonSchemaOf } from '../terms/json-rows.ts';
import type { Logger } from '../terms/ports.ts';
import { weekUs } from '../terms/time-units.ts';
import { createAddresses } from './address.ts';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  openApiDocument,
  periodDaysMax,
  periodOf,
} from './api-route.ts';
import { type IsReadable, shareWith } from './cross-origin.ts';
import {
  apiProblem,
  exceedsLimit,
  forbidden,
  isODataPath,
  isStacPath,
  jsonAnswer,
  notFound,
  odataFailure,
  refusedMethod,
  stacProblem,
} from './errors.ts';
import {
  createLane,
  createQueryLine,
  type Environment,
  type QueryLine,
  type QueryLineOptions,
  queryLineDefaults,
  sent,
} from './query-line.ts';

export interface ConsoleOptions extends GuardOptions, Omit<PageParts, 'passwordNeeded'> {
  metrics: Pick<Metrics, 'scrape'>;
  readiness: Readiness;
  log: Logger;
  /** Aborted at shutdown: live streams end. */
  closing: AbortSignal;
  /** Address at which users reach the listener, without a slash at the end; by default, that of each request. */
  consoleUrl?: string | undefined;
  /** Origins of other pages that may read answers. */
  origins?: readonly string[] | undefined;
  /** Name of the program in commands of pages, as the user calls it; `earshot` by default. */
  programName?: string;
  limits?: Partial<QueryLineOptions>;
  liveLimits?: Partial<LiveLimits>;
}

/** The default of `limit`. Answers with more rows are large: records are about 5 kB each. */
const smallRowsMax = 100;

/** Runs a query without waiting: the status must be available while other queries wait. */
const atOnce: QueryLine = (answer, signal) => answer(signal);

/**
 * In addition to the headers of every listener: pages of other sites cannot embed answers. Only pages of configured
 * origins read them, by CORS, to which this header does not apply.
 */
const sameOrigin = ['Cross-Origin-Resource-Policy', 'same-origin'] as const;

/** Builds the app. It changes nothing: it has GET, HEAD, and a POST that queries by list. */
export function createConsoleApp(options: ConsoleOptions): Hono<Environment> {
  const { products, notifications, summaries, newRequestId } = options;
  const { notificationLine, productLine, pageLine, largeLine, bySize } = createLines(options);
  const { isReadable, share } = shareWith(options.origins ?? []);
  const guard = createConsoleGuard({ ...options, isReadable });
  const addresses = createAddresses(options.consoleUrl, isPagePath);
  const app = new Hono<Environment>({ getPath: addresses.pathOf });

  app.use(share);
  app.use(async (c, next) => {
    c.set('address', addresses.addressOf(c.req));
    let cookie: string | undefined;
    const onLogin = (given: string | undefined) => {
      cookie = given;
    };
    const refusal =
      guard(c.env.incoming, c.req.path, onLogin) ?? refusedMethod(c.req, newRequestId);
    if (refusal === undefined) await next();
    else c.res = refusal;
    c.header(...sameOrigin);
    if (cookie !== undefined) c.header('Set-Cookie', cookie);
  });

  const lineFor = (rows: unknown) => bySize(productLine, rows);
  addODataRoutes(app, { products, lineFor, newRequestId });
  const passwordNeeded = options.authorize !== null;
  addStacRoutes(app, { ...options, passwordNeeded, lineFor });

  // Any answer shows that the process and its event loop work.
  app.get('/healthz', () => new Response('ok'));
  app.get('/readyz', () => readyAnswer(options.readiness));
  app.get('/metrics', async (c) =>
    c.body(await options.metrics.scrape(options.status), 200, {
      'Content-Type': metricsContentType,
    }),
  );

  const routes = [
    { route: notificationsRoute(notifications), line: notificationLine },
    { route: notificationRoute(notifications), line: notificationLine },
    { route: productsRoute(options), line: productLine },
    { route: footprintsRoute(options), line: largeLine },
    { route: summariesRoute(summaries), line: notificationLine },
    { route: coverageRoute(options), line: notificationLine },
    { route: subscriptionsRoute(options), line: notificationLine },
    { route: alertsRoute(options.alerts), line: notificationLine },
    { route: quarantineRoute(options.quarantine), line: notificationLine },
    { route: timelinessRoute(options), line: productLine },
    { route: statusRoute(options.status), line: atOnce },
    {
      route: liveRoute(createLiveFeed(options, options.closing, options.liveLimits)),
      line: atOnce,
    },
  ];
  // The largest answer of this API.
  app.use('/api/footprints', compress({ encoding: 'gzip' }));
  for (const { route, line } of routes) {
    app.get(route.path, (c) => answerApi(route, bySize(line, c.req.query('limit')), c));
  }
  const table = routes.map(({ route }) => route);
  app.get('/api/openapi.json', (c) =>
    c.json(openApiDocument(table, { passwordNeeded, base: c.var.address.base })),
  );

  app.get('/api', (c) => c.json({ paths: pathsOf(table) }));
  addPages(
    app,
    { ...options, passwordNeeded },
    {
      line: pageLine,
      newRequestId,
      programName: options.programName ?? 'earshot',
      onFailure: (error, requestId, path) => logFailure(error, { requestId, path }, options.log),
    },
  );

  app.notFound((c) => notFound(c.req.path, newRequestId()));
  app.onError((thrown, c) => answerFailure(thrown, c.req, options));
  return app;
}

/** Creates the lines of queries. Each kind has its own thread, so that neither waits for the other; pages use both. */
function createLines(options: Pick<ConsoleOptions, 'limits'>) {
  const limits = { ...queryLineDefaults, ...options.limits };
  const notificationLine = createQueryLine(limits);
  // At most one query of products is slow, so that the others pass it between its steps.
  const slow = createLane(1, limits.waitingMax);
  const [productLine, pageLine] = [createQueryLine(limits, slow), createQueryLine(limits, slow)];
  // A large answer needs some ten megabytes: one at a time, of any path.
  const largeLine = createQueryLine({ ...limits, atOnceMax: 1 }, slow);
  const bySize = (line: QueryLine, rows: unknown) =>
    Number(rows) > smallRowsMax ? largeLine : line;
  return { notificationLine, productLine, pageLine, largeLine, bySize };
}

/** Logs an error, and answers it in the format of its path. */
function answerFailure(
  thrown: Error,
  { path, raw }: HonoRequest,
  { newRequestId, log }: Pick<ConsoleOptions, 'newRequestId' | 'log'>,
): Response | Promise<Response> {
  const gone = raw.signal.aborted;
  const error = gone ? new AppError('cancelled', 'The client closed the connection.') : thrown;
  const requestId = newRequestId();
  logFailure(error, { requestId, path }, log);
  if (isStacPath(path)) return stacProblem(error, requestId);
  return isODataPath(path) ? odataFailure(error, requestId) : apiProblem(error, requestId);
}

/** `/api/status`. */
function statusRoute(status: () => Promise<Status>): ApiRoute {
  return apiRoute({
    path: '/api/status',
    operationId: 'showStatus',
    summary: 'Status of the receiver',
    description:
      'Status of each part of the receiver, with the next step for a part with a problem.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(statusSchema),
    respond: async () => ({ body: toStatusJson(await status()) }),
  });
}

const coverageQuery = z.strictObject({
  since: dateParameter
    .optional()
    .describe('Start of the first hour, ISO 8601. The default is seven days before `until`.'),
  until: dateParameter.optional().describe('End of the last hour, ISO 8601. The default is now.'),
  subscription: z.string().optional(),
});

/** `/api/coverage`. */
function coverageRoute(
  parts: Pick<ConsoleOptions, 'completeness' | 'products' | 'comparisonOff' | 'nowUs'>,
): ApiRoute {
  return apiRoute({
    path: '/api/coverage',
    operationId: 'showCoverage',
    summary: 'Coverage by hour: expected, received and missing notifications',
    description: `An event belongs to the hour of its date in the catalogue. A request can cover at most ${periodDaysMax} days.`,
    query: coverageQuery,
    answer: jsonSchemaOf(coverageSchema),
    respond: async ({ since, until, subscription }, _url, signal) => {
      const nowUs = parts.nowUs();
      const period = periodOf({ since, until }, { nowUs, backUs: weekUs });
      const question = { ...period, subscription, nowUs };
      const report = await readCoverage(parts, question, signal);
      return { body: toCoverageJson(report, parts.comparisonOff()) };
    },
  });
}

/** Returns the paths with method and summary. */
function pathsOf(table: readonly ApiRoute[]) {
  const get = (path: string, summary: string) => ({ method: 'GET', path, summary });
  return [
    ...navigation.map(({ path, label }) => get(path, `Web page: ${label}`)),
    get('/api', 'List of paths'),
    get('/api/openapi.json', 'Description of the API (OpenAPI 3.1)'),
    ...table.map(({ path, summary }) => get(path, summary)),
    ...odataPaths,
    ...stacPaths,
    get('/healthz', 'Liveness: 200 while the process runs'),
    get('/readyz', 'Readiness: 200 while notifications are accepted'),
    get('/metrics', 'Metrics for Prometheus'),
  ];
}

function answerApi(
  route: ApiRoute,
  line: QueryLine,
  context: Context<Environment>,
): Promise<Response> {
  const { method, raw } = context.req;
  const disconnect = () => context.env.incoming.socket.destroy();
  return line(
    async (signal) => {
      const client = { headers: raw.headers, disconnect };
      const answer = await route.respond(context.var.address.url, signal, client);
      if (!(answer instanceof Response)) return jsonAnswer(answer.body, answer.headers ?? {});
      // The answer to HEAD has no body: nobody would read or end a stream.
      if (method === 'HEAD') await answer.body?.cancel();
      return answer;
    },
    raw.signal,
    sent(context),
  );
}

function logFailure(err: Error, fields: { requestId: string; path: string }, log: Logger): void {
  const status = statusOf(err);
  const isUsual = status < 500 || exceedsLimit(err);
  if (isUsual) log.debug({ ...fields, status, reason: errorText(err) }, 'query refused');
  else log.error({ ...fields, status, err }, 'query failed');
}

/** Returns the refusal of a request without valid credentials; for others, a cookie to set, if any. */
type Authorize = (incoming: IncomingMessage) => {
  readonly refusal?: Response;
  readonly cookie?: string | undefined;
};

interface GuardOptions {
  /** Null without a password: then only names of this machine are allowed as Host. */
  authorize: Authorize | null;
  /** Host of the listen address. */
  listenHost: string;
  newRequestId: () => string;
}

const hostRefusal =
  'Without a password, only localhost and the address of the listener are allowed in the Host header. Use http://localhost, or set EARSHOT_CONSOLE_PASSWORD.';

const ownNames = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Returns the refusal of requests without a valid login, and of requests that a browser sends for a page of another
 * site (403), except from configured origins. Without a password, the Host must be a name of this machine: a page that uses DNS rebinding sends its
 * own name and cannot choose another. With a password, health paths need no login and accept any Host.
 */
function createConsoleGuard({
  authorize,
  listenHost,
  newRequestId,
  isReadable,
}: GuardOptions & { isReadable: IsReadable }) {
  const listenName = hostInUrl(listenHost).toLowerCase();
  return (
    incoming: IncomingMessage,
    path: string,
    onLogin: (cookie: string | undefined) => void,
  ): Response | undefined => {
    const { host } = incoming.headers;
    const isAllowed = isReadable(incoming, path) || isLinkToPage(incoming, path);
    if (isFromAnotherPage(incoming) && !isAllowed) {
      const reason = 'Requests from pages of other sites are refused.';
      return forbidden(path, reason, newRequestId());
    }
    if (authorize !== null) {
      if (healthPaths.includes(path)) return undefined;
      const { refusal, cookie } = authorize(incoming);
      onLogin(cookie);
      return refusal;
    }
    if (host === undefined) return undefined;
    const name = host.replace(/:\d*$/, '').toLowerCase();
    const address = hostInUrl((incoming.socket.localAddress ?? '').replace(/^::ffff:/, ''));
    if ([...ownNames, listenName, address].includes(name)) return undefined;
    return forbidden(path, hostRefusal, newRequestId());
  };
}

/**
 * Browsers set both headers, and pages cannot change them. In Fetch Metadata, another port of this machine is the
 * same site.
 */
function isFromAnotherPage({ headers: { host, origin, 'sec-fetch-site': site } }: IncomingMessage) {
  if (typeof site === 'string' && !['same-origin', 'none'].includes(site)) return true;
  // Ignores the scheme, as a reverse proxy may terminate HTTPS. A page without an origin sends `null`.
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== host;
}

/** True for a link that opens a page in a tab: the other page cannot read it, and pages change nothing. */
function isLinkToPage({ headers, method }: IncomingMessage, path: string): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': target, origin } = headers;
  const isNavigation = mode === 'navigate' && target === 'document' && method === 'GET';
  return isNavigation && origin === undefined && isPagePath(path);
}

/**
 * Reason why notifications are refused. `writer`: the writer thread has ended or does not answer. `store`: it cannot
 * write. `certificate`: there is no valid certificate.
 */
export type UnreadyReason = 'writer' | 'store' | 'certificate';

/** Returns all reasons; none when notifications are accepted. Never rejects. */
export type Readiness = () => Promise<readonly UnreadyReason[]>;

/** Paths that need no password, as their content is of no use to others. */
const healthPaths: readonly string[] = ['/healthz', '/readyz'];

/** Answers 200 `ready`, or 503 with the reasons, one per line. */
async function readyAnswer(readiness: Readiness): Promise<Response> {
  const reasons = await readiness();
  if (reasons.length === 0) return new Response('ready');
  return new Response(reasons.join('\n'), { status: 503 });
}
