/** Limits the number of connections, and selects the connection to close at the limit. */
import { IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './network-address.ts';

export type ConnectionCap = ReturnType<typeof capConnections>;

/** Maximum number of remembered networks with a successful request. */
const knownNetworksMax = 1_000;
/** A connection with a slower body may be closed; a body of a megabyte usually takes a fraction of this time. */
const slowBodyMs = 2_000;
/** A network with more than this share of the connections is a large one. */
const largeNetworkShare = 1 / 20;

interface Connection {
  socket: Socket;
  network: string;
  openedMs: number;
  /** Open requests, with the arrival time of their headers. */
  open: Map<ServerResponse, number>;
  /** The last request succeeded: on the public listener, the client has the credentials. */
  lastSucceeded: boolean;
}

/**
 * Limits a server's connections. Over `connectionsMax`, closes a connection that does not wait for a response: first
 * one with a slow body, then one whose last request failed, then one of the largest network, then the one that has
 * been idle longest. So neither thousands of idle connections nor a single address can block a sender. A new
 * connection is protected for `protectionMs`, unless the next one comes from a known or a smaller network: otherwise,
 * clients that reconnect at once would use all CPU time for handshakes. Must be called before the server has other
 * listeners for requests.
 */
export function capConnections(
  server: Server,
  { connectionsMax, protectionMs }: { connectionsMax: number; protectionMs: number },
) {
  // In the order of their last activity.
  const connections = new Set<Connection>();
  const perNetwork = new Map<string, number>();
  const known = new Set<string>();
  const index = createConnectionIndex();
  const sizeOf = ({ network }: Connection) => perNetwork.get(network) ?? 0;
  const largeSizeOf = (connection: Connection) => {
    const size = sizeOf(connection);
    return size > connectionsMax * largeNetworkShare ? size : 0;
  };

  server.on('connection', (socket: Socket) => {
    const network = networkOf(socket.remoteAddress ?? '');
    const openedMs = performance.now();
    const connection = { socket, network, openedMs, open: new Map(), lastSucceeded: false };
    index.add(socket, connection);
    connections.add(connection);
    perNetwork.set(network, sizeOf(connection) + 1);
    socket.once('close', () => {
      connections.delete(connection);
      const left = sizeOf(connection) - 1;
      if (left === 0) perNetwork.delete(network);
      else perNetwork.set(network, left);
    });
    if (connections.size <= connectionsMax) return;
    const candidate = connectionToClose(connections, largeSizeOf) ?? connection;
    const isProtected =
      connection.openedMs - candidate.openedMs < protectionMs && !isSlow(candidate);
    const mayStay = isProtected && largeSizeOf(candidate) <= largeSizeOf(connection);
    const closing = mayStay && !known.has(network) ? connection : candidate;
    closing.socket.destroy();
  });

  server.on('request', (request, response) => {
    const connection = index.find(request.socket);
    if (connection === undefined) return;
    connection.open.set(response, performance.now());
    response.once('close', () => {
      connection.open.delete(response);
      const succeeded = response.statusCode < 400;
      if (succeeded && !connection.lastSucceeded) remember(known, connection.network);
      connection.lastSucceeded = succeeded;
      if (connections.delete(connection)) connections.add(connection);
    });
  });

  return {
    /** Number of requests of a connection without a response, or with a response that was not read. */
    openRequests: (socket: Socket): number => index.find(socket)?.open.size ?? 0,
    /** Closes all connections without open requests, including those in a handshake. */
    closeIdle: (): void => {
      for (const { socket, open } of connections) if (open.size === 0) socket.destroy();
    },
  };
}

/** With TLS, a request has a different socket than the accepted one: finds it by address and port, once. */
function createConnectionIndex() {
  const accepted = new Map<string, Connection>();
  const found = new WeakMap<Socket, Connection>();
  const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  return {
    add: (socket: Socket, connection: Connection) => {
      const key = keyOf(socket);
      accepted.set(key, connection);
      socket.once('close', () => {
        if (accepted.get(key) === connection) accepted.delete(key);
      });
    },
    find: (socket: Socket): Connection | undefined => {
      const known = found.get(socket);
      if (known !== undefined) return known;
      const connection = accepted.get(keyOf(socket));
      if (connection !== undefined) found.set(socket, connection);
      return connection;
    },
  };
}

/** Adds a network; drops the one whose last success is oldest. */
function remember(known: Set<string>, network: string): void {
  known.delete(network);
  known.add(network);
  const [oldest] = known;
  if (known.size > knownNetworksMax && oldest !== undefined) known.delete(oldest);
}

function connectionToClose(
  connections: Iterable<Connection>,
  largeSizeOf: (connection: Connection) => number,
): Connection | undefined {
  const slow = [...connections].filter(isSlow);
  const idle = [...connections].filter(isIdle);
  const failed = idle.filter(({ lastSucceeded }) => !lastSucceeded);
  const candidates = [slow, failed, idle].find(({ length }) => length > 0) ?? [];
  return candidates.reduce<Connection | undefined>(
    (best, one) => (best !== undefined && largeSizeOf(best) >= largeSizeOf(one) ? best : one),
    undefined,
  );
}

/** A slow body blocks a connection as an idle client does, with or without credentials. */
function isSlow({ open }: Connection): boolean {
  const [first] = open;
  if (first === undefined) return false;
  const [{ req, writableEnded }, sinceMs] = first;
  return !writableEnded && !req.complete && performance.now() - sinceMs > slowBodyMs;
}

/** An unread response does not make a connection busy: otherwise, a client that never reads would stay. */
function isIdle({ open }: Connection): boolean {
  for (const response of open.keys()) if (!response.writableEnded) return false;
  return true;
}

/**
 * Creates the class of a server's requests. One packet can contain two thousand requests, and Node's parser creates
 * objects for all of them: 70 ms and 8 MB per packet. The parser stops only at a change of protocol, so a request over
 * the limit is marked as one; Node then closes the connection, because the server does not handle upgrades.
 */
export function boundedRequest(exceedsLimit: (socket: Socket) => boolean): typeof IncomingMessage {
  return class BoundedRequest extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      if (!exceedsLimit(socket)) return;
      Object.defineProperty(this, 'upgrade', { get: () => true, set: () => undefined });
    }
  };
}
