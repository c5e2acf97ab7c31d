/** The account's services as one app: the catalogue and the identity provider, and what both have. */
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { filterListBytesMax } from '../../filter/odata/request.ts';
import type { Random } from '../random.ts';
import type { SandboxClock } from '../sandbox-clock.ts';
import { type CatalogueAppOptions, cataloguePath, createCatalogueApp } from './catalogue-app.ts';
import { invalidPath, plainError } from './catalogue-errors.ts';
import { createIdentityApp, realmPath } from './identity-app.ts';
import type { IdentityProvider } from './identity-provider.ts';
import type { RequestLog } from './request-log.ts';
import type { ServiceEnvironment } from './service-environment.ts';

export interface ServiceAppOptions extends CatalogueAppOptions {
  /** Makes the request ids. */
  readonly random: Random;
  readonly provider: IdentityProvider;
  readonly requests: RequestLog;
}

/** A query by list has the largest bodies. */
const bodyBytesMax = filterListBytesMax;

/** Creates the app; it opens nothing. Dates in it are those of the sandbox's clock. */
export function createServiceApp(options: ServiceAppOptions): Hono<ServiceEnvironment> {
  const { provider, knobs, clock, random, requests, signal } = options;
  const app = new Hono<ServiceEnvironment>();
  app.use(async (context, next) => {
    context.set('requestId', random.uuid());
    context.set('logged', requests.open(context.req.method, context.req.path));
    await next();
    await clock.waitUntil(clock.now() + knobs.current().answerDelayMs, signal);
    finish(context, clock);
  });
  const tooLarge = plainError(413, 'Request Entity Too Large');
  app.use(
    bodyLimit({ maxSize: bodyBytesMax, onError: () => Response.json(tooLarge.body, tooLarge) }),
  );
  app.route(cataloguePath, createCatalogueApp(options));
  app.route(realmPath, createIdentityApp(provider, knobs));
  app.notFound(() => Response.json(invalidPath.body, invalidPath));
  // The sandbox is a tester's own: hiding the cause would only cost them time.
  app.onError(({ message }) =>
    Response.json({ detail: `The sandbox failed because of: ${message}` }, { status: 500 }),
  );
  return app;
}

/** Dates and logs an answer. A connection that was cut has none. */
function finish(context: Context<ServiceEnvironment>, clock: SandboxClock): void {
  if (context.env.outgoing.destroyed) return;
  // Without this, Node would write the real time.
  context.header('Date', new Date(clock.now()).toUTCString());
  // The catalogue tells it in every answer.
  const isIdentity = context.req.path.startsWith(realmPath);
  if (!isIdentity) context.header('request-id', context.get('requestId'));
  context.get('logged').status = context.res.status;
}
