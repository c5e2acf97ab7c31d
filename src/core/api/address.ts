/** Addresses of the private listener as its clients see them, also behind a reverse proxy. */
import type { HonoRequest } from 'hono';
import { getPath } from 'hono/utils/url';
import { pathPrefixForm } from '../http/network-address.ts';

/** Address of a request. */
export interface Address {
  /** Start of every link: origin and prefix, without a slash at the end. */
  base: string;
  /** Path below which a proxy offers the listener, such as `/earshot`; empty without one. */
  prefix: string;
  /** The whole URL, with the prefix. */
  url: URL;
}

/** Maximum length of a prefix: a longer one would enlarge each link of an answer. */
const prefixCharactersMax = 200;

/**
 * Creates the functions that read addresses. `consoleUrl` is the configured address of the listener; it has precedence
 * over all headers. A proxy may send the prefix of this address, or remove it. `isOwnPath` is true for paths of the
 * listener itself.
 */
export function createAddresses(
  consoleUrl: string | undefined,
  isOwnPath: (path: string) => boolean,
) {
  const configured = new URL(consoleUrl ?? 'http://localhost').pathname.replace(/\/$/, '');
  const top = configured.replace(/(?<=.)\/.*/, '');
  // Such a prefix cannot be distinguished from the path itself.
  const sent = isOwnPath(top) ? '' : configured;
  const withoutPrefix = (path: string) => {
    if (sent === '' || !`${path}/`.startsWith(`${sent}/`)) return path;
    return path.slice(sent.length) || '/';
  };
  return {
    /** Returns the path that is routed. */
    pathOf: (request: Request): string => withoutPrefix(getPath(request)),
    addressOf: (request: HonoRequest): Address => {
      const base = consoleUrl ?? forwardedBase(request);
      const { pathname, search } = new URL(request.url);
      const url = new URL(`${base}${withoutPrefix(pathname)}${search}`);
      return { base, prefix: new URL(base).pathname.replace(/\/$/, ''), url };
    },
  };
}

/**
 * Uses the accepted Host, whatever the request line contains (RFC 9112, 3.2.2), with `X-Forwarded-Proto` and
 * `X-Forwarded-Prefix`. A client that forges these headers only deceives itself.
 */
function forwardedBase(request: HonoRequest): string {
  const scheme = first(request, 'x-forwarded-proto').toLowerCase() === 'https' ? 'https' : 'http';
  const host = request.header('host') ?? '';
  const origin = URL.parse(`${scheme}://${host}`)?.origin ?? `${scheme}://localhost`;
  const prefix = first(request, 'x-forwarded-prefix').replace(/\/$/, '');
  const isValid = prefix.length <= prefixCharactersMax && pathPrefixForm.test(prefix);
  return isValid ? `${origin}${prefix}` : origin;
}

/** Returns the first value of a header, which the proxy next to the client has set; further proxies append theirs. */
function first(request: HonoRequest, name: string): string {
  return request.header(name)?.split(',')[0]?.trim() ?? '';
}
