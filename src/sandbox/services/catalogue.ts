/** App of the account's services: the catalogue (subscriptions and products) and the identity provider. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { compileFilter } from '../../filter/evaluate.ts';
import {
  invalidPath,
  listAnswer,
  nextLink,
  type QueryOptions,
  readProductPath,
  readQueryOptions,
  recordAnswer,
  skipMax,
  unknownProduct,
} from '../../filter/odata.ts';
import type { Random, SandboxClock } from '../clock.ts';
import { bucket } from '../products/content.ts';
import type { Ledger } from '../publishing/ledger.ts';
import { queryFaults, takeNext } from '../settings.ts';
import { type DownloadServices, productDownloads } from './downloads.ts';
import { createIdentityApp, realmPath } from './identity.ts';
import { createObjectStoreApp } from './object-store.ts';
import {
  bearerOf,
  type ErrorForm,
  formedError,
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

interface ServiceAppOptions extends SubscriptionServices, DownloadServices {
  readonly ledger: Ledger;
  readonly clock: Pick<SandboxClock, 'now'>;
  /** The last 1,000 requests, oldest first. */
  readonly requests: LoggedRequest[];
  /** Draws the request ids. */
  readonly random: Random;
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
const requestsMax = 1_000;

/** Creates the app. Opens nothing. Dates are those of the sandbox's clock. */
export function createServiceApp(options: ServiceAppOptions): Hono<Environment> {
  const { provider, liveSettings, clock, random, requests } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    const { method, path } = context.req;
    const logged: LoggedRequest = { method, path, status: null };
    requests.push(logged);
    if (requests.length > requestsMax) requests.shift();
    const requestId = random.uuid();
    context.set('logged', logged);
    context.set('requestId', requestId);
    await next();
    const { outgoing } = context.env;
    if (outgoing.headersSent && !outgoing.destroyed) logged.status = outgoing.statusCode;
    if (outgoing.headersSent || outgoing.destroyed) return;
    // Otherwise Node would send the real time.
    context.header('Date', new Date(clock.now()).toUTCString());
    // The catalogue sends request-id in every answer.
    if (!path.startsWith(realmPath)) context.header('request-id', requestId);
    logged.status = context.res.status;
  });
  const tooLarge = plainError(413, 'Request Entity Too Large');
  const onError = async ({ req, env }: Context) => {
    // A client that is still sending would see a closed connection, not the answer.
    await req.raw.arrayBuffer().catch(() => undefined);
    return writeAnswer(tooLarge, env.outgoing);
  };
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError }));
  app.use(`${cataloguePath}/*`, productDownloads(options));
  app.all(`${cataloguePath}/*`, async (context) => {
    const form = { settings: liveSettings.current(), requestId: context.get('requestId') };
    const answer = await answerTo(context, options).catch((error) => refusalAnswer(error, form));
    return writeAnswer(answer, context.env.outgoing);
  });
  app.route(realmPath, createIdentityApp(provider, liveSettings));
  const { contents } = options;
  if (contents !== undefined) app.route(`/${bucket}`, createObjectStoreApp(contents, options));
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
    : subscriptionOperations(path, { ...options, ...form, params: url.searchParams });
  if (operations === null) return plainError(404, invalidPath);
  const operation = new Map(Object.entries(operations)).get(req.method);
  if (operation === undefined) {
    return plainError(405, 'Method Not Allowed', { Allow: Object.keys(operations).join(', ') });
  }
  const token = bearerOf(req);
  if (query === null && (token === undefined || !provider.accepts(token))) {
    const challenge = { 'WWW-Authenticate': 'Bearer' };
    return plainError(settings.unauthorizedStatus, 'Unauthorized', challenge);
  }
  const body = await req.text();
  if (query === null) return operation(body);
  if (!query.isList) return query.answer();
  return injectFault(takeNext(queryFaults, settings.nextQueries), query.answer, form);
}

type Filter = NonNullable<QueryOptions['filter']>;

/**
 * Returns the query of `Products` or `DeletedProducts` at a path below `/odata/v1`, with the catalogue's limits, order and errors; null for an
 * unknown path.
 */
function productOperation(
  path: string,
  url: URL,
  ledger: Pick<Ledger, 'select' | 'find'>,
  form: ErrorForm,
): { readonly isList: boolean; readonly answer: () => ServiceAnswer } | null {
  const target = readProductPath(path);
  if (target === null) return null;
  const { entity, id } = target;
  const answer = (): ServiceAnswer => {
    const options = readQueryOptions(url.searchParams, entity);
    if (id !== null) {
      const product = ledger.find(entity, id);
      if (product === undefined) return formedError(404, unknownProduct(id), form);
      return { status: 200, body: recordAnswer(entity, options, product.record) };
    }
    const { filter, orderby, top, skip, count } = options;
    const matches = filter === null ? () => true : compileFilter(datesFirst(filter));
    const found = ledger.select(entity, { matches, orderby });
    const end = skip + top;
    // No link to a page that would be refused; the real service's behaviour there is not known.
    const isLinked = found.length > end && top > 0 && end <= skipMax;
    const body = listAnswer({
      ...{ entity, options },
      records: found.slice(skip, end).map(({ record }) => record),
      count: count ? found.length : null,
      nextLink: isLinked ? nextLink(url, { skip: end }) : null,
    });
    return { status: 200, body };
  };
  return { isList: id === null, answer };
}

/** Moves conditions on dates to the front: the other values of old products must be decompressed first. */
function datesFirst(filter: Filter): Filter {
  if (filter.node !== 'and') return filter;
  const isDate = (term: Filter) => term.node === 'comparison' && /Date/.test(term.field);
  const others = filter.terms.filter((term) => !isDate(term));
  return { ...filter, terms: [...filter.terms.filter(isDate), ...others] };
}
