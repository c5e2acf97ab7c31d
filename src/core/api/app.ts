/**
 * The app of the private listener: OData and JSON answers about received notifications, as a Hono app. It opens
 * nothing itself.
 */
import type { IncomingMessage } from 'node:http';
import { type Context, Hono, type HonoRequest, type MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { getPath } from 'hono/utils/url';
import { hostInUrl } from '../http/network-address.ts';
import { type Answers, createAnswers, exceedsLimit, statusOf } from '../http/problem.ts';
import type { PageRoute } from '../page/layout.ts';
import { addPages, createIsPagePath } from '../page/pages.ts';
import { AppError, errorText } from '../terms/app-error.ts';
import type { Logger } from '../terms/ports.ts';
import { type ApiRoute, openApiDocument } from './api-route.ts';
import type { ConsoleParts, PathRow, Protocol, ServedRoute } from './listener-slot.ts';
import {
  createQueryLine,
  type Environment,
  type QueryLine,
  type QueryLineOptions,
  queryLineDefaults,
  sent,
} from './query-line.ts';

export interface ConsoleOptions extends GuardOptions, Omit<ConsoleParts, 'passwordNeeded'> {
  readiness: Readiness;
  log: Logger;
  /** Address at which users reach the listener, without a slash at the end; by default, that of each request. */
  consoleUrl?: string | undefined;
  /** Origins of other pages that may read answers. */
  origins?: readonly string[] | undefined;
  /** Name of the program in commands of pages, as the user calls it; `earshot` by default. */
  programName?: string;
  limits?: Partial<QueryLineOptions>;
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
  const { slots, newRequestId } = options;
  const parts: ConsoleParts = { ...options, passwordNeeded: options.authorize !== null };
  const pages = slots.flatMap((slot) => slot.pages ?? []);
  const protocols = slots.flatMap((slot) => slot.protocols ?? []);
  const routes = slots.flatMap((slot) => slot.routes?.(parts) ?? []);
  const roots = ['/api', '/assets', ...protocols.map(({ root }) => root)];
  const isPagePath = createIsPagePath(pages);
  const answers = createAnswers(protocols);
  const { isReadable, share } = shareWith(options.origins ?? [], answers);
  const guard = createConsoleGuard({ ...options, isReadable, isPagePath, answers });
  const addresses = createAddresses(
    options.consoleUrl,
    (path) => roots.includes(path) || isPagePath(path),
  );
  const app = new Hono<Environment>({ getPath: addresses.pathOf });

  app.use(share);
  app.use(async (c, next) => {
    c.set('address', addresses.addressOf(c.req));
    const refusal = guard(c.env.incoming, c.req.path) ?? answers.refusedMethod(c.req, newRequestId);
    if (refusal === undefined) await next();
    else c.res = refusal;
    c.header(...sameOrigin);
  });

  const lines = createLines(options);
  const lineFor = (rows: unknown) => bySize(lines, 'products', rows);
  for (const { add } of protocols) add(app, { ...parts, lineFor });

  // Any answer shows that the process and its event loop work.
  app.get('/healthz', () => new Response('ok'));
  app.get('/readyz', () => readyAnswer(options.readiness));

  for (const { route, line } of routes) {
    app.get(route.path, (c) => answerApi(route, bySize(lines, line, c.req.query('limit')), c));
  }
  const table = routes.map(({ route }) => route);
  app.get('/api/openapi.json', (c) =>
    c.json(openApiDocument(table, { ...parts, base: c.var.address.base })),
  );
  app.get('/api', (c) => c.json({ paths: pathsOf(pages, table, protocols) }));
  addPages(app, parts, {
    ...{ pages, roots, newRequestId, line: lines.pages },
    livePosition: slots.find((slot) => slot.livePosition !== undefined)?.livePosition,
    programName: options.programName ?? 'earshot',
    onFailure: (error, requestId, path) => logFailure(error, { requestId, path }, options.log),
  });

  app.notFound((c) => answers.notFound(c.req.path, newRequestId()));
  app.onError((thrown, c) => answerFailure(thrown, c.req, { ...options, answers }));
  return app;
}

type Lines = Record<ServedRoute['line'] | 'pages', QueryLine>;

/** Creates the lines of queries. Each kind has its own thread, so that neither waits for the other; pages use both. */
function createLines(options: Pick<ConsoleOptions, 'limits'>): Lines {
  const limits = { ...queryLineDefaults, ...options.limits };
  return {
    log: createQueryLine(limits),
    products: createQueryLine(limits),
    pages: createQueryLine(limits),
    // A large answer needs some ten megabytes: one at a time, of any path.
    large: createQueryLine({ ...limits, atOnceMax: 1 }),
    none: atOnce,
  };
}

const bySize = (lines: Lines, line: ServedRoute['line'], rows: unknown) =>
  Number(rows) > smallRowsMax ? lines.large : lines[line];

/** Logs an error, and answers it in the format of its path. */
function answerFailure(
  thrown: Error,
  { path, raw }: HonoRequest,
  {
    newRequestId,
    log,
    answers,
  }: Pick<ConsoleOptions, 'newRequestId' | 'log'> & { answers: Pick<Answers, 'failure'> },
): Response | Promise<Response> {
  const gone = raw.signal.aborted;
  const error = gone ? new AppError('cancelled', 'The client closed the connection.') : thrown;
  const requestId = newRequestId();
  logFailure(error, { requestId, path }, log);
  return answers.failure(path, error, requestId);
}

/** Returns the paths with method and summary. */
function pathsOf(
  pages: readonly PageRoute[],
  table: readonly ApiRoute[],
  protocols: readonly Protocol[],
): PathRow[] {
  const get = (path: string, summary: string) => ({ method: 'GET', path, summary });
  return [
    ...pages.map(({ path, label }) => get(path, `Web page: ${label}`)),
    get('/api', 'List of paths'),
    get('/api/openapi.json', 'Description of the API (OpenAPI 3.1)'),
    ...table.map(({ path, summary }) => get(path, summary)),
    ...protocols.flatMap(({ paths }) => paths),
    get('/healthz', 'Liveness: 200 while the process runs'),
    get('/readyz', 'Readiness: 200 while notifications are accepted'),
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
      if (!(answer instanceof Response))
        return Response.json(answer.body, { headers: answer.headers ?? {} });
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

interface GuardOptions {
  /**
   * Returns the refusal of a request without valid credentials. Null without a password: then only names of this machine
   * are allowed as Host.
   */
  authorize: ((incoming: IncomingMessage) => { readonly refusal?: Response }) | null;
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
  isPagePath,
  answers: { forbidden },
}: GuardOptions & {
  isReadable: ReturnType<typeof shareWith>['isReadable'];
  isPagePath: (path: string) => boolean;
  answers: Pick<Answers, 'forbidden'>;
}) {
  const listenName = hostInUrl(listenHost).toLowerCase();
  return (incoming: IncomingMessage, path: string): Response | undefined => {
    const { host } = incoming.headers;
    const isLink = isPagePath(path) && isLinkToPage(incoming);
    const isAllowed = isReadable(incoming, path) || isLink;
    if (isFromAnotherPage(incoming) && !isAllowed) {
      const reason = 'Requests from pages of other sites are refused.';
      return forbidden(path, reason, newRequestId());
    }
    if (authorize !== null) {
      if (healthPaths.includes(path)) return undefined;
      return authorize(incoming).refusal;
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
function isLinkToPage({ headers, method }: IncomingMessage): boolean {
  const { 'sec-fetch-mode': mode, 'sec-fetch-dest': target, origin } = headers;
  const isNavigation = mode === 'navigate' && target === 'document' && method === 'GET';
  return isNavigation && origin === undefined;
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

/** Address of a request. */
export interface Address {
  /** Start of every link: origin and prefix, without a slash at the end. */
  base: string;
  /** Path below which a proxy offers the listener, such as `/earshot`; empty without one. */
  prefix: string;
  /** The whole URL, with the prefix. */
  url: URL;
}

/**
 * Creates the functions that read addresses. `consoleUrl` is the configured address of the listener. A proxy may send the prefix of this address, or remove it. `isOwnPath` is true for paths of the
 * listener itself.
 */
function createAddresses(consoleUrl: string | undefined, isOwnPath: (path: string) => boolean) {
  const configured = new URL(consoleUrl ?? 'http://localhost').pathname.replace(/\/$/, '');
  const top = configured.replace(/(?<=.)\/.*/, '');
  // Such a prefix cannot be distinguished from the path itself.
  const sent = isOwnPath(top) ? '' : configured;
  const withoutPrefix = (path: string) => {
    if (sent === '' || !`${path}/`.startsWith(`${sent}/`)) return path;
    return path.slice(sent.length) || '/';
  };
  return {
    /** Returns the path that is routed. */
    pathOf: (request: Request): string => withoutPrefix(getPath(request)),
    addressOf: (request: HonoRequest): Address => {
      // Uses the accepted Host, whatever the request line contains (RFC 9112, 3.2.2).
      const own = URL.parse(`http://${request.header('host')}`)?.origin ?? 'http://localhost';
      const base = consoleUrl ?? own;
      const { pathname, search } = new URL(request.url);
      const url = new URL(`${base}${withoutPrefix(pathname)}${search}`);
      return { base, prefix: new URL(base).pathname.replace(/\/$/, ''), url };
    },
  };
}

/** Time for which a browser remembers the answer to a preflight request. */
const preflightSeconds = 600;

/**
 * Creates the check, and the middleware that adds the headers and answers preflight requests. Those have no credentials,
 * so the middleware runs before the login. Browsers send no stored login: a script adds the header itself.
 */
function shareWith(
  origins: readonly string[],
  { methodsOf, isShared }: Pick<Answers, 'methodsOf' | 'isShared'>,
) {
  /** Returns true for a request of a script that may read the answer. */
  const isReadable = ({ headers: { origin = '' } }: IncomingMessage, path: string): boolean =>
    origins.includes(origin) && isShared(path);
  const answer = cors({
    origin: [...origins],
    allowMethods: (_origin, c) => [...methodsOf(c.req.path)],
    exposeHeaders: ['*'],
    maxAge: preflightSeconds,
  });
  const share: MiddlewareHandler<Environment> = (c, next) =>
    isReadable(c.env.incoming, c.req.path) ? answer(c, next) : next();
  return { isReadable, share };
}
