/** The receiver for somebody else's app: below any path, among other middleware, on any server. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono, type HonoRequest } from 'hono';
import { createMiddleware } from 'hono/factory';
import { AppError } from '../domain/app-error.ts';
import { createReceiverApp, type ReceiverOptions } from './receiver-app.ts';

/** What the server passes to the app: Node's own request, where there is one. */
type Environment = { Bindings: Partial<HttpBindings> };

/**
 * Builds the app. It answers `/notifications` and `/notifications/<name>`; everything else falls through
 * to the app it is mounted in.
 */
export function createMountableReceiver(options: ReceiverOptions): Hono {
  const provideRequest = createMiddleware<Environment>(async (c, next) => {
    const given = bindingsOf(c);
    c.env = { ...given, incoming: standInFor(c.req, given.incoming) };
    await next();
    c.env = given;
  });
  const app = new Hono();
  app.use('/notifications/*', provideRequest);
  app.route('/', createReceiverApp(options));
  return app;
}

/** Nothing is passed where the app is called without a server. */
function bindingsOf(c: Context<Environment>): Partial<HttpBindings> {
  const bindings: Partial<HttpBindings> | undefined = c.env;
  return bindings ?? {};
}

/**
 * The request as the receiver reads it. The body comes through Hono: other middleware may have read or
 * wrapped it, and then Node's own request would never end. Nothing is read before it is asked for.
 */
function standInFor(request: HonoRequest, given: IncomingMessage | undefined): IncomingMessage {
  const { headers } = request.raw;
  const parts = {
    headers: given?.headers ?? Object.fromEntries(headers),
    rawHeaders: given?.rawHeaders ?? [...headers].flat(),
    socket: given?.socket ?? {},
  };
  const body = Readable.from(bodyOf(request), { objectMode: false });
  // A sender may go away when nobody listens any more, as after 413; unheard, that would end the process.
  body.on('error', () => undefined);
  // These are all the parts that the receiver looks at.
  return Object.assign(body, parts) as unknown as IncomingMessage;
}

/**
 * In one piece where its length was announced, and so is checked already, or Hono has kept it. Whether
 * it can be read is seen by reading: a look at `raw.body` alone would bring the server to cut off
 * senders of large bodies before they hear the answer.
 */
async function* bodyOf(request: HonoRequest): AsyncGenerator<Uint8Array> {
  const { raw } = request;
  const isChunked = raw.headers.has('transfer-encoding');
  const isAnnounced = raw.headers.has('content-length') && !isChunked;
  try {
    if (isAnnounced || raw.bodyUsed) yield Buffer.from(await request.arrayBuffer());
    else if (raw.body !== null) yield* raw.body;
  } catch (error) {
    // What the Fetch standard has for a body that somebody has read, or holds a reader of.
    throw error instanceof TypeError ? bodyIsGone(error) : error;
  }
}

function bodyIsGone(cause: TypeError): AppError {
  return new AppError(
    'internal',
    'Other middleware has read the body of the request, and not through c.req, which keeps it.',
    { advice: 'Mount the receiver before that middleware.', cause },
  );
}
