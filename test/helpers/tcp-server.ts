/** Servers on loopback, which are closed after the test. */
import { once } from 'node:events';
import type { Server as HttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';

/** Starts a server, and returns its port. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    if ('closeAllConnections' in server) (server as HttpServer).closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

/** Starts a server over TCP or TLS, by default one that accepts connections and never responds. */
export async function startTcpServer(
  // The end of a connection is only noticed while reading from it.
  serve: (socket: Socket) => void = (socket) => socket.resume(),
  tls?: TlsOptions,
) {
  const sockets = new Set<Socket>();
  let connections = 0;
  const accept = (socket: Socket) => {
    connections += 1;
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
    serve(socket);
  };
  const server = tls === undefined ? createServer(accept) : createTlsServer(tls, accept);
  const port = await listening(server);
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
  });
  return {
    port,
    /** Number of connections accepted so far. */
    connections: () => connections,
    open: () => sockets.size,
    /** The open connections. */
    sockets,
  };
}
