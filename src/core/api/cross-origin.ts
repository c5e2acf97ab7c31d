/** Answers that pages of other sites may read: of data, by scripts of the configured origins (CORS). */
import type { IncomingMessage } from 'node:http';
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Answers } from './errors.ts';
import type { Environment } from './query-line.ts';

/** Returns true for a request of a script that may read the answer. */
export type IsReadable = (incoming: Pick<IncomingMessage, 'headers'>, path: string) => boolean;

/** Time for which a browser remembers the answer to a preflight request. */
const preflightSeconds = 600;

/**
 * Creates the check, and the middleware that adds the headers and answers preflight requests. Those have no credentials,
 * so the middleware runs before the login. Browsers send no stored login: a script adds the header itself.
 */
export function shareWith(
  origins: readonly string[],
  { methodsOf, isShared }: Pick<Answers, 'methodsOf' | 'isShared'>,
): {
  isReadable: IsReadable;
  share: MiddlewareHandler<Environment>;
} {
  const isReadable: IsReadable = ({ headers: { origin = '' } }, path) =>
    origins.includes(origin) && isShared(path);
  const answer = cors({
    origin: [...origins],
    allowMethods: (_origin, c) => [...methodsOf(c.req.path)],
    exposeHeaders: ['*'],
    maxAge: preflightSeconds,
  });
  return {
    isReadable,
    share: (c, next) => (isReadable(c.env.incoming, c.req.path) ? answer(c, next) : next()),
  };
}
