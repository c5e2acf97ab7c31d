/** Keeps strangers and their web pages away from the private listener. */
import type { IncomingMessage } from 'node:http';
import { hostInUrl } from '../http/network-address.ts';
import { forbidden } from './console-errors.ts';
import { healthPaths } from './health-routes.ts';

/** The answer for somebody without the right credentials; nothing for others. */
export type LetIn = (incoming: IncomingMessage) => { readonly refusal?: Response };

export interface GuardOptions {
  /** Null where there is no password: then only names of this machine are answered to. */
  letIn: LetIn | null;
  /** The host that the listener was told to listen on. */
  listenHost: string;
  newRequestId: () => string;
}

const wrongName =
  'Without a password this answers to localhost and its own address only. Use http://localhost, or set EARSHOT_CONSOLE_PASSWORD.';

const ownNames = ['localhost', '127.0.0.1', '[::1]'];

/**
 * Returns the refusal for those who must log in, and for what a browser sends on behalf of another
 * site (403). Without a password, the Host must be a name of our own: a page whose name was made to
 * lead here (DNS rebinding) sends that name, and no page can choose another. With one, whether the receiver
 * is well may be asked without it, under any name.
 */
export function createConsoleGuard({ letIn, listenHost, newRequestId }: GuardOptions) {
  const listenName = hostInUrl(listenHost).toLowerCase();
  return (incoming: IncomingMessage, path: string): Response | undefined => {
    const { host } = incoming.headers;
    if (isFromAnotherPage(incoming)) {
      const reason = 'Requests from pages of other sites are not answered.';
      return forbidden(path, reason, newRequestId());
    }
    if (letIn !== null) return healthPaths.includes(path) ? undefined : letIn(incoming).refusal;
    if (host === undefined) return undefined;
    const name = host.replace(/:\d*$/, '').toLowerCase();
    const address = hostInUrl((incoming.socket.localAddress ?? '').replace(/^::ffff:/, ''));
    if ([...ownNames, listenName, address].includes(name)) return undefined;
    return forbidden(path, wrongName, newRequestId());
  };
}

/** Browsers set both headers, and pages cannot. To Fetch Metadata another port of this machine is the same site. */
function isFromAnotherPage({ headers: { host, origin, 'sec-fetch-site': site } }: IncomingMessage) {
  if (typeof site === 'string' && !['same-origin', 'none'].includes(site)) return true;
  // Scheme aside, as a proxy in front may speak HTTPS. A page without an origin sends `null`.
  return origin !== undefined && origin.replace(/^https?:\/\//, '') !== host;
}
