/** Opens and closes the control port. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import { SandboxConfigurationError } from './configuration-error.ts';
import { isLoopbackHost } from './loopback.ts';

export interface ListenAddress {
  /** Name or address, IPv6 without brackets. */
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export interface ControlServer {
  /** `http://<host>:<port>` with the port in use. */
  readonly url: string;
  /** Stops listening and cuts the open connections. */
  close(): Promise<void>;
}

/**
 * Starts the control port. Whoever reaches it steers the sandbox without a password, so an address
 * that is not loopback throws SandboxConfigurationError unless allowed; so does one that is taken.
 */
export async function startControlServer(
  app: Hono,
  { host, port }: ListenAddress,
  { allowRemote }: { allowRemote: boolean },
): Promise<ControlServer> {
  if (!allowRemote && !isLoopbackHost(host)) {
    throw new SandboxConfigurationError(
      `The control port will not listen on ${host}: it has no password. Use 127.0.0.1, or add --allow-remote-control if the network is yours alone.`,
    );
  }
  const listener = getRequestListener(app.fetch);
  const server = createServer((request, response) => void listener(request, response));
  const listening = Promise.withResolvers<void>();
  server.once('error', listening.reject);
  server.listen({ host, port }, listening.resolve);
  await listening.promise.catch((cause: Error) => {
    throw new SandboxConfigurationError(
      `The control port cannot listen on ${host}, port ${port}: ${cause.message}. Choose another port, or 0 for any free one.`,
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
