/** Opens and closes the sandbox's own ports, and keeps the sandbox on this machine. */
import { lookup } from 'node:dns';
import { createServer } from 'node:http';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { SandboxConfigurationError } from './live-settings.ts';

export interface ListenAddress {
  /** Name or address, IPv6 without brackets. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export interface LocalServer {
  /** `http://<host>:<port>` with the port in use. */
  readonly url: string;
  /** Stops listening and cuts the open connections. */
  close(): Promise<void>;
}

/**
 * Starts an app on plain HTTP. Throws SandboxConfigurationError for an address that is in use, or that is
 * not loopback unless allowed. `name` is what listens, `hazard` why it must not be reached from elsewhere.
 */
export async function startLocalServer(
  fetch: Parameters<typeof getRequestListener>[0],
  { host, port }: ListenAddress,
  { name, hazard, allowRemote }: { name: string; hazard: string; allowRemote: boolean },
): Promise<LocalServer> {
  if (!allowRemote && !isLoopbackHost(host)) {
    throw new SandboxConfigurationError(
      `The ${name} will not listen on ${host}: ${hazard}. Use 127.0.0.1, or add --allow-remote-control if the network is yours alone.`,
    );
  }
  const listener = getRequestListener(fetch);
  const server = createServer((request, response) => void listener(request, response));
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject);
  server.listen({ host, port }, listening.resolve);
  await listening.promise.catch((cause: Error) => {
    throw new SandboxConfigurationError(
      `The ${name} cannot listen on ${host}, port ${port}: ${cause.message}. Choose another port, or 0 for any free one.`,
      { cause },
    );
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('Not a TCP address.');
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/** Returns true for localhost, 127.0.0.0/8 and ::1; brackets round an IPv6 address are allowed. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return bare.toLowerCase() === 'localhost' || isLoopbackAddress(bare);
}

/**
 * Resolves a name as Node does, but fails when any of its addresses is not on this machine: a hosts
 * file or a resolver may say anything, even about localhost.
 */
export const lookupLoopback: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0);
    const foreign = addresses.find(({ address }) => !isLoopbackAddress(address));
    const [first] = addresses;
    if (foreign !== undefined || first === undefined) {
      const found = foreign?.address ?? 'nothing';
      return callback(new Error(`${host} resolves to ${found}, not to this machine.`), '', 0);
    }
    if (options.all) callback(null, addresses);
    else callback(null, first.address, first.family);
  });
};

function isLoopbackAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 0) return false;
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(address, family === 6 ? 'ipv6' : 'ipv4');
}
