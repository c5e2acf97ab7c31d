/** Opens and closes the sandbox's ports, and restricts the sandbox to this machine. */
import { lookup } from 'node:dns';
import { createServer } from 'node:http';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { SandboxConfigurationError } from './live-settings.ts';

export interface ListenAddress {
  /** Host name or address; IPv6 without brackets. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
}

export interface LocalServer {
  /** `http://<host>:<port>` with the actual port. */
  readonly url: string;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

/**
 * Starts an app on plain HTTP. Throws SandboxConfigurationError if the address is in use, or if it is not
 * loopback and `allowRemote` is false. Error messages contain `name` and `hazard`, the risk of remote access.
 */
export async function startLocalServer(
  fetch: Parameters<typeof getRequestListener>[0],
  { host, port }: ListenAddress,
  { name, hazard, allowRemote }: { name: string; hazard: string; allowRemote: boolean },
): Promise<LocalServer> {
  if (!allowRemote && !isLoopbackHost(host)) {
    throw new SandboxConfigurationError(
      `The ${name} must not listen on ${host}: ${hazard}. Use 127.0.0.1, or add --allow-remote-control on a private network.`,
    );
  }
  const listener = getRequestListener(fetch);
  const server = createServer((request, response) => void listener(request, response));
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject);
  server.listen({ host, port }, listening.resolve);
  await listening.promise.catch((cause: Error) => {
    throw new SandboxConfigurationError(
      `The ${name} cannot listen on ${host}, port ${port}: ${cause.message}. Choose another port with --${name.split(' ')[0]}, or 0 for any free one.`,
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

/** Returns true for localhost, 127.0.0.0/8 and ::1. An IPv6 address may have brackets. */
export function isLoopbackHost(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, '$1');
  return bare.toLowerCase() === 'localhost' || isLoopbackAddress(bare);
}

/**
 * Resolves a name as Node does, but fails if any address is not loopback: a hosts file or a resolver may
 * map even localhost to another machine.
 */
export const lookupLoopback: LookupFunction = (host, options, callback) => {
  lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, '', 0);
    const foreign = addresses.find(({ address }) => !isLoopbackAddress(address));
    const [first] = addresses;
    if (foreign !== undefined || first === undefined) {
      const found = foreign?.address ?? 'no address';
      return callback(new Error(`${host} resolves to ${found}, not to a loopback address.`), '', 0);
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
