/** Looks whether a service can be reached: connects, shakes hands where it is https, and asks nothing. */
import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { networkFault } from './network-fault.ts';
import { contextTrusting } from './trusted-authorities.ts';

const timeoutMs = 10_000;

/**
 * Null when the host of the URL takes connections and, for https, shows a certificate that is trusted; else why
 * not, as `networkFault` says it. `ca` is trusted besides the public authorities and the system's.
 */
export function reachHost(
  url: string,
  { ca, signal }: { ca: string | null; signal: AbortSignal },
): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port) || (isTls ? 443 : 80) };
  return new Promise((resolve) => {
    const socket = isTls ? openTls(address, ca) : connectPlain(address);
    const end = (fault: string | null) => {
      signal.removeEventListener('abort', giveUp);
      socket.destroy();
      resolve(fault);
    };
    const giveUp = () => end('the look at it was ended');
    socket.setTimeout(timeoutMs, () => end('it did not answer in time'));
    socket.once(isTls ? 'secureConnect' : 'connect', () => end(null));
    socket.on('error', (error) => end(networkFault(error)));
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
  });
}

function openTls(address: { host: string; port: number }, ca: string | null): Socket {
  return connectTls({
    ...address,
    ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
    // As it is trusted where something is sent.
    ...(ca === null ? {} : { secureContext: contextTrusting([ca]) }),
    rejectUnauthorized: true,
  });
}
