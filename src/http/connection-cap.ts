/** Keeps the number of connections bounded: the one that has been idle longest makes room. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/**
 * Watches a server's connections. Beyond `connectionsMax`, the oldest one without a request in hand
 * is closed, so that a crowd of silent connections cannot keep a sender out.
 */
export function capConnections(server: Server, connectionsMax: number): void {
  // By address and port: under TLS the socket of a request is another object than the accepted one.
  const idle = new Map<string, Socket>();
  const busy = new Map<string, Socket>();

  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    idle.set(key, socket);
    socket.once('close', () => {
      idle.delete(key);
      busy.delete(key);
    });
    if (idle.size + busy.size <= connectionsMax) return;
    const [oldestKey, oldest] = idle.entries().next().value ?? [key, socket];
    idle.delete(oldestKey);
    oldest.destroy();
  });

  server.on('request', (request, response) => {
    const key = keyOf(request.socket);
    const socket = idle.get(key);
    if (socket === undefined) return;
    idle.delete(key);
    busy.set(key, socket);
    response.once('close', () => {
      if (busy.delete(key) && !socket.destroyed) idle.set(key, socket);
    });
  });
}

function keyOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
