/** App of the account's services: the catalogue (subscriptions and products) and the identity provider. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { invalidPath } from '../../filter/odata.ts';
import type { Random, SandboxClock } from '../clock.ts';
import { queryFaults, takeNext } from '../live-settings.ts';
import type { Ledger } from '../publishing/ledger.ts';
import { createIdentityApp, type IdentityProvider, realmPath } from './identity.ts';
import { productOperation } from './product-queries.ts';
import {
  bearerOf,
  type createRequestLog,
  injectFault,
  plainError,
  refusalAnswer,
  type ServiceAnswer,
  writeAnswer,
} from './service-answer.ts';
import {
  type SubscriptionServices,
  subscriptionOperations,
  unavailable,
} from './subscription-api.ts';

interface ServiceAppOptions extends SubscriptionServices {
  readonly ledger: Ledger;
  readonly provider: IdentityProvider;
  readonly clock: SandboxClock;
  readonly requests: ReturnType<typeof createRequestLog<LoggedRequest>>;
  /** Draws the request ids. */
  readonly random: Random;
  /** Ends the delay of answers. */
  readonly signal: AbortSignal;
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
const bodyBytesMax = 128 * 1_024;

/** Creates the app. Opens nothing. Dates are those of the sandbox's clock. */
export function createServiceApp(options: ServiceAppOptions): Hono<Environment> {
  const { provider, liveSettings, clock, random, requests, signal } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    const { method, path } = context.req;
    const logged = requests.open({ method, path, status: null });
    const requestId = random.uuid();
    context.set('logged', logged);
    context.set('requestId', requestId);
    await next();
    await clock.waitUntil(clock.now() + liveSettings.current().answerDelayMs, signal);
    if (context.env.outgoing.destroyed) return;
    // Otherwise Node would send the real time.
    context.header('Date', new Date(clock.now()).toUTCString());
    // The catalogue sends request-id in every answer.
    if (!path.startsWith(realmPath)) context.header('request-id', requestId);
    logged.status = context.res.status;
  });
  const tooLarge = plainError(413, 'Request Entity Too Large');
  const onError = ({ env }: Context) => writeAnswer(tooLarge, env.outgoing);
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError }));
  app.all(`${cataloguePath}/*`, async (context) => {
    const form = { settings: liveSettings.current(), requestId: context.get('requestId') };
    const answer = await answerTo(context, options).catch((error) => refusalAnswer(error, form));
    return writeAnswer(answer, context.env.outgoing);
  });
  app.route(realmPath, createIdentityApp(provider, liveSettings));
  // Its real status is not known.
  app.notFound(({ env }) => writeAnswer(plainError(404, invalidPath), env.outgoing));
  // Only testers use the sandbox, so the cause is shown.
  app.onError(({ message }) =>
    Response.json({ detail: `Internal error of the sandbox: ${message}` }, { status: 500 }),
  );
  return app;
}

async function answerTo(
  { req, get }: Context<Environment>,
  options: ServiceAppOptions,
): Promise<ServiceAnswer | 'cut'> {
  const { liveSettings, ledger, provider } = options;
  const settings = liveSettings.current();
  const form = { settings, requestId: get('requestId') };
  if (settings.unavailable) return unavailable(form);
  const path = req.path.slice(cataloguePath.length);
  const url = new URL(req.url);
  const query = productOperation(path, url, ledger, form);
  const operations = query
    ? { GET: query.answer }
    : subscriptionOperations(path, url.searchParams, options, form);
  if (operations === null) return plainError(404, invalidPath);
  const operation = new Map(Object.entries(operations)).get(req.method);
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
  if (query === null) return operation(body);
  const { clock, signal } = options;
  await clock.waitUntil(clock.now() + settings.queryDelayMs, signal);
  const fault = query.isList
    ? takeNext(queryFaults, settings.nextQueries, (nextQueries) =>
        liveSettings.change({ nextQueries }),
      )
    : null;
  if (fault === null) return query.answer();
  return injectFault(fault, query.answer, settings.queryRetryAfterSeconds, form);
}
