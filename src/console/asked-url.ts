/** The URL under which a request was made, for links that lead on from it. */
import type { Context } from 'hono';

/** A proxy in front that speaks HTTPS says so in `X-Forwarded-Proto`; a liar fools but itself. */
export function askedUrl(context: Context): URL {
  const url = new URL(context.req.url);
  if (context.req.header('x-forwarded-proto')?.toLowerCase() === 'https') url.protocol = 'https:';
  return url;
}
