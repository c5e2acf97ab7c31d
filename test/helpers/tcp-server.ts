/** A server on loopback, by default one that accepts connections and never responds. It is closed after the test. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { onTestFinished } from 'vitest';

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
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    /** Number of connections accepted so far. */
    connections: () => connections,
    open: () => sockets.size,
    /** The open connections. */
    sockets,
  };
}
