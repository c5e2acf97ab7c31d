/** App of the account's services: the catalogue (subscriptions and products) and the identity provider. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { filterListBytesMax } from '../../filter/odata.ts';
import type { Subscriptions } from '../account.ts';
import type { Random, SandboxClock } from '../clock.ts';
import type { Queues } from '../delivery/queue.ts';
import type { LiveServiceSettings } from '../live-settings.ts';
import type { Holdings } from '../publishing/holdings.ts';
import { createIdentityApp, type IdentityProvider, realmPath } from './identity.ts';
import {
  chooseQueryFault,
  injectQueryFault,
  type ProductOperation,
  productOperation,
} from './product-queries.ts';
import { queueOperations } from './queue-operations.ts';
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
  readonly queues: Queues;
  readonly holdings: Holdings;
  readonly provider: IdentityProvider;
  readonly liveSettings: LiveServiceSettings;
  readonly clock: SandboxClock;
  readonly requests: RequestLog;
  /** Draws the request ids. */
  readonly random: Random;
  /** Draws the faults of product lists. */
  readonly queryRandom: Random;
  /** Draws the faults of Reads and Acks. */
  readonly queueRandom: Random;
  /** Ends the delay of answers. */
  readonly signal: AbortSignal;
}

interface Environment {
  /** Node's request and response, to close a connection. */
  readonly Bindings: HttpBindings;
  readonly Variables: {
    /** GUID of this request, sent to the client. */
    requestId: string;
    /** Entry of this request in the request log. */
    logged: LoggedRequest;
  };
}

/** Path below the origin. */
const cataloguePath = '/odata/v1';

/** Creates the app. Opens nothing. Dates are those of the sandbox's clock. */
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
  // FilterList queries have the largest bodies.
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
  // Only testers use the sandbox, so the cause is shown.
  app.onError(({ message }) =>
    Response.json({ detail: `Internal error of the sandbox: ${message}` }, { status: 500 }),
  );
  return app;
}

/** Sets Date and request-id and logs the status, unless the connection was closed. */
function finish(context: Context<Environment>, clock: SandboxClock): void {
  if (context.env.outgoing.destroyed) return;
  // Otherwise Node would send the real time.
  context.header('Date', new Date(clock.now()).toUTCString());
  // The catalogue sends request-id in every answer.
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
    : (queueOperations(path, url, options, requestId) ??
      subscriptionOperations(path, options, requestId));
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

/** Answers a product query with the configured delay; a list may get an injected fault. */
async function answerQuery(
  { isList, answer }: ProductOperation,
  body: string,
  requestId: string,
  { liveSettings, clock, queryRandom, signal }: ServiceAppOptions,
) {
  await clock.waitUntil(clock.now() + liveSettings.current().queryDelayMs, signal);
  const fault = isList ? chooseQueryFault(liveSettings, queryRandom) : null;
  const correct = answer(body);
  return fault === null
    ? correct
    : injectQueryFault(fault, correct, liveSettings.current(), requestId);
}

/** A request to the account's services. */
export interface LoggedRequest {
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  /** Null before the answer, or if the connection was closed instead. */
  status: number | null;
  /** Grant of a token request: `password` is a login. */
  grantType?: string;
}

export type RequestLog = ReturnType<typeof createRequestLog<LoggedRequest>>;
