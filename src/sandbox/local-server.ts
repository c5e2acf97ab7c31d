/** Opens and closes the sandbox's own ports: the control port and the account's services. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { SandboxConfigurationError } from './configuration-error.ts';
import { isLoopbackHost } from './loopback.ts';

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

export interface LocalServerOptions {
  /** What listens there, for messages: `control port`. */
  readonly name: string;
  /** Why it must not be reached from elsewhere, for messages: `it has no password`. */
  readonly hazard: string;
  readonly allowRemote: boolean;
}

/**
 * Starts an app on plain HTTP. An address that is not loopback throws SandboxConfigurationError
 * unless allowed; so does one that is taken.
 */
export async function startLocalServer(
  fetch: Parameters<typeof getRequestListener>[0],
  { host, port }: ListenAddress,
  { name, hazard, allowRemote }: LocalServerOptions,
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
  return {
    url: toUrl(host, server.address()),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function toUrl(host: string, address: AddressInfo | string | null): string {
  if (address === null || typeof address === 'string') throw new TypeError('Not a TCP address.');
  return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
}
