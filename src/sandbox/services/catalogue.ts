/** The account's services as one app: the catalogue's subscriptions and products, and the identity provider. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { filterListBytesMax } from '../../filter/odata/request.ts';
import type { Subscriptions } from '../account.ts';
import type { SandboxClock } from '../clock.ts';
import type { Holdings } from '../publishing/holdings.ts';
import type { Random } from '../random.ts';
import {
  type CatalogueAnswer,
  invalidPath,
  plainError,
  refusalAnswer,
} from './catalogue-errors.ts';
import { createIdentityApp, type IdentityProvider, realmPath } from './identity.ts';
import {
  chooseQueryFault,
  type PlayedAnswer,
  type ProductOperation,
  playQueryFault,
  productOperation,
} from './product-queries.ts';
import type { ServiceKnobs } from './service-settings.ts';
import { subscriptionOperations, unavailable } from './subscription-api.ts';

export interface ServiceAppOptions {
  readonly subscriptions: Subscriptions;
  readonly holdings: Holdings;
  readonly provider: IdentityProvider;
  readonly knobs: ServiceKnobs;
  readonly clock: SandboxClock;
  readonly requests: RequestLog;
  /** Draws the request ids. */
  readonly random: Random;
  /** Draws the faults of lists. */
  readonly queryRandom: Random;
  /** Ends the wait of delayed answers. */
  readonly signal: AbortSignal;
}

interface Environment {
  /** Node's own request and answer, to cut a connection. */
  readonly Bindings: HttpBindings;
  readonly Variables: {
    /** GUID of this request, reported to the client. */
    requestId: string;
    /** Its entry in the log. */
    logged: OpenRequest;
  };
}

/** Below the origin. */
const cataloguePath = '/odata/v1';

/** Creates the app; it opens nothing. Dates in it are those of the sandbox's clock. */
export function createServiceApp(options: ServiceAppOptions): Hono<Environment> {
  const { provider, knobs, clock, random, requests, signal } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    context.set('requestId', random.uuid());
    context.set('logged', requests.open(context.req.method, context.req.path));
    await next();
    await clock.waitUntil(clock.now() + knobs.current().answerDelayMs, signal);
    finish(context, clock);
  });
  // A query by list has the largest bodies.
  const tooLarge = () => write(plainError(413, 'Request Entity Too Large'));
  app.use(bodyLimit({ maxSize: filterListBytesMax, onError: tooLarge }));
  app.all(`${cataloguePath}/*`, async (context) => {
    const answer = await answerTo(context, options).catch((error: unknown) => {
      const refusal = refusalAnswer(error, knobs.current(), context.get('requestId'));
      if (refusal === undefined) throw error;
      return refusal;
    });
    if (answer === 'cut') {
      context.env.outgoing.destroy();
      return RESPONSE_ALREADY_SENT;
    }
    return 'text' in answer ? writePlayed(answer, context) : write(answer);
  });
  app.route(realmPath, createIdentityApp(provider, knobs));
  app.notFound(() => write(invalidPath));
  // The sandbox is a tester's own: hiding the cause would only cost them time.
  app.onError(({ message }) =>
    Response.json({ detail: `The sandbox failed because of: ${message}` }, { status: 500 }),
  );
  return app;
}

/** Dates and logs an answer. A connection that was cut has none. */
function finish(context: Context<Environment>, clock: SandboxClock): void {
  if (context.env.outgoing.destroyed) return;
  // Without this, Node would write the real time.
  context.header('Date', new Date(clock.now()).toUTCString());
  // The catalogue sends it in every answer.
  const isIdentity = context.req.path.startsWith(realmPath);
  if (!isIdentity) context.header('request-id', context.get('requestId'));
  context.get('logged').status = context.res.status;
}

function write({ status, body, headers = {} }: CatalogueAnswer): Response {
  return body === null ? new Response(null, { status }) : Response.json(body, { status, headers });
}

async function writePlayed(
  { status, contentType, text, cutAfter }: PlayedAnswer,
  { env: { outgoing } }: Context<Environment>,
): Promise<Response> {
  const headers = { 'Content-Type': contentType };
  if (cutAfter === null) return new Response(text, { status, headers });
  const bytes = Buffer.from(text);
  outgoing.writeHead(status, { ...headers, 'Content-Length': bytes.length });
  await new Promise((resolve) => outgoing.write(bytes.subarray(0, cutAfter), resolve));
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}

async function answerTo(
  { req, get }: Context<Environment>,
  options: ServiceAppOptions,
): Promise<CatalogueAnswer | PlayedAnswer | 'cut'> {
  const { knobs, holdings, provider } = options;
  const requestId = get('requestId');
  const settings = knobs.current();
  if (settings.unavailable) return unavailable(settings, requestId);
  const path = req.path.slice(cataloguePath.length);
  const url = new URL(req.url);
  const query = productOperation(path, { url, holdings, settings, requestId });
  const operations = query
    ? { [query.method]: query.answer }
    : subscriptionOperations(path, options, requestId);
  if (operations === null) return invalidPath;
  const operation = operations[req.method];
  if (operation === undefined) {
    return plainError(405, 'Method Not Allowed', { Allow: Object.keys(operations).join(', ') });
  }
  const [, token] = /^Bearer +(\S+)$/i.exec(req.header('Authorization') ?? '') ?? [];
  const isOpen = query !== null && !settings.queriesNeedToken;
  if (!isOpen && (token === undefined || !provider.accepts(token))) {
    const challenge = { 'WWW-Authenticate': 'Bearer' };
    return plainError(settings.unauthorizedStatus, 'Unauthorized', challenge);
  }
  const body = await req.text();
  return query ? answerQuery(query, body, requestId, options) : operation(body);
}

/** Answers a query of products, perhaps delayed, and perhaps with a fault when it is a list. */
async function answerQuery(
  { isList, answer }: ProductOperation,
  body: string,
  requestId: string,
  { knobs, clock, queryRandom, signal }: ServiceAppOptions,
) {
  await clock.waitUntil(clock.now() + knobs.current().queryDelayMs, signal);
  const fault = isList ? chooseQueryFault(knobs, queryRandom) : null;
  const right = answer(body);
  return fault === null ? right : playQueryFault(fault, right, knobs.current(), requestId);
}

export interface LoggedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null before the answer, and when the connection was cut instead. */
  readonly status: number | null;
  /** The grant of a request for tokens: `password` is a login. */
  readonly grantType?: string;
}

/** An entry whose end is not known yet; what is set here shows in the log. */
type OpenRequest = { -readonly [Key in keyof LoggedRequest]: LoggedRequest[Key] };

const requestsMax = 1_000;

export type RequestLog = ReturnType<typeof createRequestLog>;

/** Creates an empty log of the requests to the account's services. */
export function createRequestLog() {
  const requests: OpenRequest[] = [];
  return {
    open: (method: string, path: string): OpenRequest => {
      const request = { method, path, status: null };
      requests.push(request);
      if (requests.length > requestsMax) requests.shift();
      return request;
    },
    /** Returns copies of the last thousand, in the order of arrival. */
    entries: (): readonly LoggedRequest[] => requests.map((request) => ({ ...request })),
  };
}
