/** Keeps the number of connections bounded: the one that has been idle longest makes room. */
import type { Server } from 'node:http';
import type { Socket } from 'node:net';

export interface ConnectionCap {
  /** Closes every connection without a request in hand, those in a handshake included. */
  closeIdle(): void;
}

/**
 * Watches a server's connections. Beyond `connectionsMax`, the oldest one without a request in hand
 * is closed, so that a crowd of silent connections cannot keep a sender out.
 */
export function capConnections(server: Server, connectionsMax: number): ConnectionCap {
  // By address and port: under TLS the socket of a request is another object than the accepted one.
  const accepted = new Map<string, Socket>();
  // In the order in which they became idle.
  const idle = new Set<Socket>();
  const requestsInHand = new Map<Socket, number>();
  let open = 0;

  server.on('connection', (socket: Socket) => {
    const key = keyOf(socket);
    open += 1;
    accepted.set(key, socket);
    idle.add(socket);
    socket.once('close', () => {
      open -= 1;
      idle.delete(socket);
      requestsInHand.delete(socket);
      if (accepted.get(key) === socket) accepted.delete(key);
    });
    const [oldest] = idle;
    if (open > connectionsMax) oldest?.destroy();
  });

  server.on('request', (request, response) => {
    const socket = accepted.get(keyOf(request.socket));
    if (socket === undefined) return;
    idle.delete(socket);
    requestsInHand.set(socket, (requestsInHand.get(socket) ?? 0) + 1);
    response.once('close', () => {
      const left = (requestsInHand.get(socket) ?? 1) - 1;
      requestsInHand.set(socket, left);
      if (left === 0 && !socket.destroyed) idle.add(socket);
    });
  });

  return {
    closeIdle: () => {
      for (const socket of idle) socket.destroy();
    },
  };
}

function keyOf(socket: Socket): string {
  return `${socket.remoteAddress} ${socket.remotePort}`;
}
