/** The account's services as one app: the catalogue's subscriptions and products, and the identity provider. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { filterListBytesMax } from '../../filter/odata.ts';
import type { Subscriptions } from '../account.ts';
import type { Random, SandboxClock } from '../clock.ts';
import type { LiveServiceSettings } from '../live-settings.ts';
import type { Holdings } from '../publishing/holdings.ts';
import { createIdentityApp, type IdentityProvider, realmPath } from './identity.ts';
import {
  chooseQueryFault,
  injectQueryFault,
  type ProductOperation,
  productOperation,
} from './product-queries.ts';
import {
  bearerOf,
  type createRequestLog,
  invalidPath,
  plainError,
  refusalAnswer,
  type ServiceAnswer,
  writeAnswer,
} from './service-answer.ts';
import { subscriptionOperations, unavailable } from './subscription-api.ts';

export interface ServiceAppOptions {
  readonly subscriptions: Subscriptions;
  readonly holdings: Holdings;
  readonly provider: IdentityProvider;
  readonly liveSettings: LiveServiceSettings;
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
    logged: LoggedRequest;
  };
}

/** Below the origin. */
const cataloguePath = '/odata/v1';

/** Creates the app; it opens nothing. Dates in it are those of the sandbox's clock. */
export function createServiceApp(options: ServiceAppOptions): Hono<Environment> {
  const { provider, liveSettings, clock, random, requests, signal } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    context.set('requestId', random.uuid());
    const { method, path } = context.req;
    context.set('logged', requests.open({ method, path, status: null }));
    await next();
    await clock.waitUntil(clock.now() + liveSettings.current().answerDelayMs, signal);
    finish(context, clock);
  });
  // A query by list has the largest bodies.
  const tooLarge = plainError(413, 'Request Entity Too Large');
  const onError = ({ env }: Context) => writeAnswer(tooLarge, env.outgoing);
  app.use(bodyLimit({ maxSize: filterListBytesMax, onError }));
  app.all(`${cataloguePath}/*`, async (context) => {
    const answer = await answerTo(context, options).catch((error: unknown) => {
      const refusal = refusalAnswer(error, liveSettings.current(), context.get('requestId'));
      if (refusal === undefined) throw error;
      return refusal;
    });
    return writeAnswer(answer, context.env.outgoing);
  });
  app.route(realmPath, createIdentityApp(provider, liveSettings));
  app.notFound(({ env }) => writeAnswer(invalidPath, env.outgoing));
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

async function answerTo(
  { req, get }: Context<Environment>,
  options: ServiceAppOptions,
): Promise<ServiceAnswer | 'cut'> {
  const { liveSettings, holdings, provider } = options;
  const requestId = get('requestId');
  const settings = liveSettings.current();
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
  const token = bearerOf(req);
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
  { liveSettings, clock, queryRandom, signal }: ServiceAppOptions,
) {
  await clock.waitUntil(clock.now() + liveSettings.current().queryDelayMs, signal);
  const fault = isList ? chooseQueryFault(liveSettings, queryRandom) : null;
  const right = answer(body);
  return fault === null ? right : injectQueryFault(fault, right, liveSettings.current(), requestId);
}

/** A request to the account's services. */
export interface LoggedRequest {
  readonly method: string;
  /** Without the query. */
  readonly path: string;
  /** Null before the answer, and when the connection was cut instead. */
  status: number | null;
  /** The grant of a request for tokens: `password` is a login. */
  grantType?: string;
}

export type RequestLog = ReturnType<typeof createRequestLog<LoggedRequest>>;
