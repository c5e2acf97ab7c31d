/** The URL under which a request was made, for links that lead on from it. */
import type { Context } from 'hono';

/**
 * Under the Host that was let in, whatever name the request line may have (RFC 9112, 3.2.2). A proxy in
 * front that speaks HTTPS says so in `X-Forwarded-Proto`; a liar fools but itself.
 */
export function askedUrl(context: Context): URL {
  const { pathname, search } = new URL(context.req.url);
  const host = URL.parse(`http://${context.req.header('host') ?? ''}`)?.host ?? 'localhost';
  const url = new URL(`http://${host}${pathname}${search}`);
  if (context.req.header('x-forwarded-proto')?.toLowerCase() === 'https') url.protocol = 'https:';
  return url;
}
