/** Which endpoints the sandbox delivers to: HTTPS on this machine, unless it was told otherwise. */
import { isLoopbackHost } from '../loopback.ts';
import type { EndpointAddress } from './subscription.ts';

export interface EndpointRules {
  /** Allows an endpoint on another machine. */
  readonly allowRemote?: boolean;
  /** Allows `http://`, for an endpoint behind a proxy that does the TLS. */
  readonly allowPlainHttp?: boolean;
}

/** Says what is wrong with an endpoint and its credentials, without repeating those; null: nothing. */
export function endpointFault(
  { endpoint, username }: EndpointAddress,
  { allowRemote, allowPlainHttp }: EndpointRules,
): string | null {
  const url = URL.parse(endpoint);
  if (url === null) return 'The endpoint is not a URL; it must begin with https://.';
  if (url.protocol !== 'https:' && !(url.protocol === 'http:' && allowPlainHttp)) {
    return `The endpoint begins with ${url.protocol}; it must begin with https://, as the catalogue delivers to nothing else.`;
  }
  if (url.username !== '' || url.password !== '') {
    return 'The endpoint has credentials in its URL; give them as user name and password.';
  }
  if (username?.includes(':')) {
    return 'The user name has a colon, which Basic Authentication cannot carry; choose another.';
  }
  if (allowRemote || isLoopbackHost(url.hostname)) return null;
  return `The endpoint ${url.host} is not on this machine. The sandbox stays on localhost, 127.0.0.0/8 and [::1] so that nobody is flooded by mistake; add --allow-remote if this one is yours.`;
}
