/** The receiver for mounting in another app: below any path, with other middleware, on any server. */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { HttpBindings } from '@hono/node-server';
import { Hono, type HonoRequest } from 'hono';
import { createMiddleware } from 'hono/factory';
import { AppError } from '../core/terms/app-error.ts';
import type { Logger } from '../core/terms/ports.ts';
import { createReceiverApp, type Outcome, type ReceiverOptions } from './app.ts';

/** Bindings from the server: Node's request, if there is one. */
type Environment = { Bindings: Partial<HttpBindings> };

/**
 * Creates the app. It handles `/notifications` and `/notifications/<name>`; other paths are left to the app that it
 * is mounted in.
 */
export function createMountableReceiver(options: ReceiverOptions): Hono {
  const provideRequest = createMiddleware<Environment>(async (c, next) => {
    // Undefined if the app is called without a server.
    const given = c.env ?? {};
    c.env = { ...given, incoming: requestFor(c.req, given.incoming) };
    await next();
    c.env = given;
  });
  const app = new Hono();
  app.use('/notifications/*', provideRequest);
  app.route('/', createReceiverApp(options));
  return app;
}

/**
 * Creates the request for the receiver. Its body comes through Hono: other middleware may have read or
 * wrapped it, and then Node's request would never end. Reads the body only on demand.
 */
function requestFor(request: HonoRequest, given: IncomingMessage | undefined): IncomingMessage {
  const { headers } = request.raw;
  const parts = {
    headers: given?.headers ?? Object.fromEntries(headers),
    rawHeaders: given?.rawHeaders ?? [...headers].flat(),
    socket: given?.socket ?? {},
  };
  const body = Readable.from(bodyOf(request), { objectMode: false });
  // A sender may disconnect after 413; without a listener, the error would end the process.
  body.on('error', () => undefined);
  // The receiver uses only these parts.
  return Object.assign(body, parts) as unknown as IncomingMessage;
}

/**
 * Returns the body in one chunk if its length was announced, and so is already checked, or if Hono has cached it.
 * Detects an unreadable body only by reading: accessing `raw.body` first would make the server disconnect senders
 * of large bodies before they read the response.
 */
async function* bodyOf(request: HonoRequest): AsyncGenerator<Uint8Array> {
  const { raw } = request;
  const isChunked = raw.headers.has('transfer-encoding');
  const isAnnounced = raw.headers.has('content-length') && !isChunked;
  try {
    if (isAnnounced || raw.bodyUsed) yield Buffer.from(await request.arrayBuffer());
    else if (raw.body !== null) yield* raw.body;
  } catch (error) {
    // By the Fetch standard, for a body that is already read or locked.
    throw error instanceof TypeError ? bodyAlreadyRead(error) : error;
  }
}

function bodyAlreadyRead(cause: TypeError): AppError {
  return new AppError(
    'internal',
    'Other middleware has read the request body directly instead of through c.req, which caches the body.',
    { advice: 'Mount the receiver before that middleware.', cause },
  );
}

/** The callback of users, which does not get the receipt. */
type Observe = (outcome: Outcome, subscription: string | null) => void;

/** Ignores errors and rejected promises of a log. */
export function guardLog(log: Logger): Logger {
  const guardedOf = (level: keyof Logger) =>
    guarded(
      (fields: object, message: string) => log[level](fields, message),
      () => undefined,
    );
  return {
    ...{ debug: guardedOf('debug'), info: guardedOf('info') },
    ...{ warn: guardedOf('warn'), error: guardedOf('error') },
  };
}

/** Logs errors and rejected promises of `onOutcome`; the log must not throw. */
export function guardObserve(observe: Observe, log: Logger): Observe {
  const notify: Observe = (outcome, subscription) => observe(outcome, subscription);
  return guarded(notify, (err) => log.error({ err }, 'onOutcome failed'));
}

function guarded<Args extends unknown[]>(
  call: (...args: Args) => unknown,
  onFailure: (error: unknown) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      Promise.resolve(call(...args)).catch(onFailure);
    } catch (error) {
      onFailure(error);
    }
  };
}
