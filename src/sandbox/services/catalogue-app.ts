/** The HTTP side of the catalogue: its subscriptions for the account, its products for everybody. */
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import type { Subscriptions } from '../account/subscriptions.ts';
import type { Holdings } from '../publishing/holdings.ts';
import type { Random } from '../random.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import {
  type CatalogueAnswer,
  invalidPath,
  plainError,
  refusalAnswer,
  unauthorized,
  unavailable,
} from './catalogue-errors.ts';
import type { IdentityProvider } from './identity-provider.ts';
import { type ProductTarget, productOperations, productTargetOf } from './product-queries.ts';
import { chooseQueryFault, type PlayedAnswer, playQueryFault } from './query-faults.ts';
import type { ServiceEnvironment } from './service-environment.ts';
import type { ServiceKnobs } from './service-settings.ts';
import { toJson } from './subscription-json.ts';
import { readChanges, readCreation } from './subscription-request.ts';

/** Below the origin. */
export const cataloguePath = '/odata/v1';

export interface CatalogueAppOptions {
  readonly subscriptions: Subscriptions;
  readonly holdings: Omit<Holdings, 'note'>;
  readonly provider: Pick<IdentityProvider, 'accepts'>;
  readonly knobs: ServiceKnobs;
  readonly clock: SandboxClock;
  /** Draws the faults of lists. */
  readonly queryRandom: Random;
  /** Ends the wait of answers that are kept back. */
  readonly signal: AbortSignal;
}

/** What a request is about. */
type Target =
  | { readonly kind: 'all' }
  | { readonly kind: 'list' }
  | { readonly kind: 'one'; readonly id: string }
  | ProductTarget;

type Operation = (id: string, body: string) => CatalogueAnswer | 'cut';

/** Creates the app of the catalogue. It needs a request id in its context. */
export function createCatalogueApp(options: CatalogueAppOptions): Hono<ServiceEnvironment> {
  const { knobs } = options;
  const app = new Hono<ServiceEnvironment>();
  app.all('*', async (context) => {
    const requestId = context.get('requestId');
    const answer = await answerTo(context, options).catch((error: unknown) => {
      const refusal = refusalAnswer(error, knobs.current(), requestId);
      if (refusal === undefined) throw error;
      return refusal;
    });
    if (answer === 'cut') {
      context.env.outgoing.destroy();
      return RESPONSE_ALREADY_SENT;
    }
    return 'text' in answer ? writePlayed(answer, context) : write(answer);
  });
  return app;
}

function write({ status, body, headers }: CatalogueAnswer): Response {
  if (body === null) return new Response(null, { status });
  return Response.json(body, { status, ...(headers ? { headers } : {}) });
}

async function writePlayed(
  { status, contentType, text, cutAfter }: PlayedAnswer,
  { env: { outgoing } }: Context<ServiceEnvironment>,
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
  context: Context<ServiceEnvironment>,
  options: CatalogueAppOptions,
): Promise<CatalogueAnswer | PlayedAnswer | 'cut'> {
  const { req } = context;
  const requestId = context.get('requestId');
  const settings = options.knobs.current();
  if (settings.unavailable) return unavailable(settings, requestId);
  const target = targetOf(req.path);
  if (target === null) return invalidPath;
  const operations = operationsOn(target, context, options);
  const operation = operations[req.method];
  if (operation === undefined) {
    return plainError(405, 'Method Not Allowed', { Allow: Object.keys(operations).join(', ') });
  }
  const query = async (open: ProductTarget) => {
    const body = await req.text();
    return answerQuery(open, () => operation('', body), context, options);
  };
  if (isOpen(target) && !settings.queriesNeedToken) return query(target);
  const [, token] = /^Bearer +(\S+)$/i.exec(req.header('Authorization') ?? '') ?? [];
  if (token === undefined || !options.provider.accepts(token)) return unauthorized(settings);
  if (isOpen(target)) return query(target);
  return operation(target.kind === 'one' ? target.id : '', await req.text());
}

/** A query of products, perhaps kept back, and perhaps spoiled when it is a list. */
async function answerQuery(
  target: ProductTarget,
  answer: () => CatalogueAnswer | 'cut',
  context: Context<ServiceEnvironment>,
  { knobs, clock, queryRandom, signal }: CatalogueAppOptions,
) {
  await clock.waitUntil(clock.now() + knobs.current().queryDelayMs, signal);
  const fault = 'id' in target && target.id === null ? chooseQueryFault(knobs, queryRandom) : null;
  const right = answer();
  if (fault === null || right === 'cut') return right;
  return playQueryFault(fault, right, knobs.current(), context.get('requestId'));
}

/** Ids stand bare in the path; one in quotes is no path. */
function targetOf(path: string): Target | null {
  const resource = path.slice(cataloguePath.length);
  if (resource === '/Subscriptions') return { kind: 'all' };
  if (resource === '/Subscriptions/Info') return { kind: 'list' };
  const [, id] = /^\/Subscriptions(?:\(|%28)([\da-z-]+)(?:\)|%29)$/i.exec(resource) ?? [];
  return id === undefined ? productTargetOf(resource) : { kind: 'one', id };
}

/** Products may be looked for without a token, unless a knob says otherwise. */
function isOpen(target: Target): target is ProductTarget {
  return ['Products', 'DeletedProducts', 'FilterList', 'Attributes'].includes(target.kind);
}

function operationsOn(
  target: Target,
  context: Context<ServiceEnvironment>,
  options: CatalogueAppOptions,
): Record<string, Operation> {
  const { subscriptions, holdings, knobs } = options;
  const settings = knobs.current();
  const requestId = context.get('requestId');
  if (isOpen(target)) {
    const url = new URL(context.req.url);
    return productOperations({ url, target, holdings, settings, requestId });
  }
  const { kind } = target;
  if (kind === 'all') return { POST: (_, body) => create(body, options, requestId) };
  if (kind === 'list') {
    return { GET: () => ok(subscriptions.list().map((one) => toJson(one, settings))) };
  }
  const read: Operation = (id) => ok(toJson(subscriptions.find(id), settings));
  return {
    ...(settings.getById ? { GET: read } : {}),
    PATCH: (id, body) => {
      const changes = readChanges(body);
      if (changes === 'cancelled') return remove(id, subscriptions);
      return ok(toJson(subscriptions.edit(id, changes), settings));
    },
    DELETE: (id) => remove(id, subscriptions),
  };
}

function create(
  body: string,
  { subscriptions, knobs }: CatalogueAppOptions,
  requestId: string,
): CatalogueAnswer | 'cut' {
  const settings = knobs.current();
  const { createsRefused503, createAnswersLost } = settings;
  if (createsRefused503 > 0) {
    knobs.change({ createsRefused503: createsRefused503 - 1 });
    return unavailable(settings, requestId);
  }
  const subscription = subscriptions.create(readCreation(body));
  if (createAnswersLost > 0) {
    knobs.change({ createAnswersLost: createAnswersLost - 1 });
    return 'cut';
  }
  return { status: 201, body: toJson(subscription, settings) };
}

function remove(id: string, subscriptions: Subscriptions): CatalogueAnswer {
  subscriptions.remove(id);
  return { status: 204, body: null };
}

function ok(body: object): CatalogueAnswer {
  return { status: 200, body };
}
