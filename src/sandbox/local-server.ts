/** Opens and closes the sandbox's ports, on this machine only. */
import { createServer } from 'node:http';
import { BlockList, isIP } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { SandboxConfigurationError } from './live-settings.ts';

export interface LocalServer {
  /** `http://<host>:<port>` with the actual port. */
  readonly url: string;
  /** Stops listening and closes open connections. */
  close(): Promise<void>;
}

/**
 * Starts an app on plain HTTP, at `host:port`; port 0 selects a free one. Throws SandboxConfigurationError if the
 * address is in use, or not of this machine: passwords and keys of the sandbox are publicly known.
 */
export async function startLocalServer(
  fetch: Parameters<typeof getRequestListener>[0],
  address: string,
): Promise<LocalServer> {
  const [, host = '', port = ''] = /^\[?([^\]]+)\]?:(\d+)$/.exec(address) ?? [];
  if (!isLoopbackHost(host)) {
    throw new SandboxConfigurationError(
      `The sandbox must not listen on ${address}, because its passwords are public. Use 127.0.0.1.`,
    );
  }
  const listener = getRequestListener(fetch);
  const server = createServer((request, response) => void listener(request, response));
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject);
  server.listen({ host, port: Number(port) }, listening.resolve);
  await listening.promise.catch((cause: Error) => {
    throw new SandboxConfigurationError(
      `The sandbox cannot listen on ${address}: ${cause.message}. Choose another port with --control, --service or --inference, or 0 for any free one.`,
      { cause },
    );
  });
  const bound = server.address();
  if (bound === null || typeof bound === 'string') throw new TypeError('Not a TCP address.');
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound.port}`,
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
  const family = isIP(bare);
  if (family === 0) return bare.toLowerCase() === 'localhost';
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8);
  loopback.addAddress('::1', 'ipv6');
  return loopback.check(bare, family === 6 ? 'ipv6' : 'ipv4');
}
