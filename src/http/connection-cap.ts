/** Keeps the number of connections bounded, and decides who makes room for whom. */
import { IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { networkOf } from './network-address.ts';

export type ConnectionCap = ReturnType<typeof capConnections>;

/** Networks that succeeded with a request: as many as these are remembered. */
const knownNetworksMax = 1_000;
/** A request whose body takes longer may have to make room: a body of a megabyte takes a fraction of it. */
const slowBodyMs = 2_000;
/** A network that has this part of all places is a crowd. */
const crowdShare = 1 / 20;

interface Place {
  socket: Socket;
  network: string;
  takenMs: number;
  /** With the time at which the head of the request was there. */
  inHand: Map<ServerResponse, number>;
  /** The last answer was no refusal: on the public listener, who has the credentials. */
  isWelcome: boolean;
  /** A written answer that was seen here before, and since when. */
  untaken: { response: ServerResponse; sinceMs: number } | null;
}

/**
 * Watches a server's connections. Beyond `connectionsMax` one is closed that waits for nothing from us: one whose
 * body comes slowly, then a stranger's before one whose last request succeeded, then one of the largest crowd, then
 * the one that has been silent longest. So neither thousands of silent connections nor a single address keep a
 * sender out. A new connection stays for `tenureMs`, unless one comes that is known, or belongs to a smaller crowd:
 * else those who return at once would take all our time for their handshakes. To be called before the server has
 * other listeners for requests.
 */
export function capConnections(
  server: Server,
  { connectionsMax, tenureMs }: { connectionsMax: number; tenureMs: number },
) {
  // The one that was busy last stands at the end.
  const places = new Set<Place>();
  const perNetwork = new Map<string, number>();
  const known = new Set<string>();
  const placeOf = createPlaceBook();
  const sizeOf = ({ network }: Place) => perNetwork.get(network) ?? 0;
  const crowdOf = (place: Place) =>
    sizeOf(place) > connectionsMax * crowdShare ? sizeOf(place) : 0;

  server.on('connection', (socket: Socket) => {
    const place = newPlace(socket);
    const { network } = place;
    placeOf.note(socket, place);
    places.add(place);
    perNetwork.set(network, sizeOf(place) + 1);
    socket.once('close', () => {
      places.delete(place);
      const left = sizeOf(place) - 1;
      if (left === 0) perNetwork.delete(network);
      else perNetwork.set(network, left);
    });
    if (places.size <= connectionsMax) return;
    const oldest = placeToFree(places, crowdOf) ?? place;
    const isNew = place.takenMs - oldest.takenMs < tenureMs && !isSlow(oldest);
    const mayStay = isNew && crowdOf(oldest) <= crowdOf(place);
    const leaving = mayStay && !known.has(network) ? place : oldest;
    leaving.socket.destroy();
  });

  server.on('request', (request, response) => {
    const place = placeOf.find(request.socket);
    if (place === undefined) return;
    place.inHand.set(response, performance.now());
    response.once('close', () => {
      place.inHand.delete(response);
      const isWelcome = response.statusCode < 400;
      if (isWelcome && !place.isWelcome) remember(known, place.network);
      place.isWelcome = isWelcome;
      if (places.delete(place)) places.add(place);
    });
  });

  return {
    /** The number of a connection's requests that have not been answered, or whose answers were not read. */
    requestsInHand: (socket: Socket): number => placeOf.find(socket)?.inHand.size ?? 0,
    /** Closes every connection without a request in flight, those in a handshake included. */
    closeIdle: (): void => {
      for (const { socket, inHand } of places) if (inHand.size === 0) socket.destroy();
    },
    /** Closes those that have not read a written answer since a call of this so long ago. */
    closeUntaken: (timeoutMs: number): void => {
      for (const place of places) if (hasUntakenFor(place, timeoutMs)) place.socket.destroy();
    },
  };
}

/** Under TLS the socket of a request is another object than the accepted one: found by address and port, once. */
function createPlaceBook() {
  const accepted = new Map<string, Place>();
  const found = new WeakMap<Socket, Place>();
  const keyOf = ({ remoteAddress, remotePort }: Socket) => `${remoteAddress} ${remotePort}`;
  return {
    note: (socket: Socket, place: Place) => {
      const key = keyOf(socket);
      accepted.set(key, place);
      socket.once('close', () => {
        if (accepted.get(key) === place) accepted.delete(key);
      });
    },
    find: (socket: Socket): Place | undefined => {
      const known = found.get(socket);
      if (known !== undefined) return known;
      const place = accepted.get(keyOf(socket));
      if (place !== undefined) found.set(socket, place);
      return place;
    },
  };
}

function newPlace(socket: Socket): Place {
  const network = networkOf(socket.remoteAddress ?? '');
  const takenMs = performance.now();
  return { socket, network, takenMs, inHand: new Map(), isWelcome: false, untaken: null };
}

/** The one that has been there longest without a new success is the first to be forgotten. */
function remember(known: Set<string>, network: string): void {
  known.delete(network);
  known.add(network);
  const [oldest] = known;
  if (known.size > knownNetworksMax && oldest !== undefined) known.delete(oldest);
}

function placeToFree(
  places: Iterable<Place>,
  crowdOf: (place: Place) => number,
): Place | undefined {
  const slow = [...places].filter(isSlow);
  const waiting = [...places].filter(isWaiting);
  const strangers = waiting.filter(({ isWelcome }) => !isWelcome);
  const candidates = [slow, strangers, waiting].find(({ length }) => length > 0) ?? [];
  return candidates.reduce<Place | undefined>(
    (best, place) => (best !== undefined && crowdOf(best) >= crowdOf(place) ? best : place),
    undefined,
  );
}

/** Whoever sends a body slowly keeps a place as one who is silent does, with or without credentials. */
function isSlow({ inHand }: Place): boolean {
  const [first] = inHand;
  if (first === undefined) return false;
  const [{ req, writableEnded }, sinceMs] = first;
  return !writableEnded && !req.complete && performance.now() - sinceMs > slowBodyMs;
}

/** An answer that was written and is not taken counts as none: else whoever reads nothing would stay. */
function isWaiting({ inHand }: Place): boolean {
  for (const response of inHand.keys()) if (!response.writableEnded) return false;
  return true;
}

function hasUntakenFor(place: Place, timeoutMs: number): boolean {
  const response = [...place.inHand.keys()].find(({ writableEnded }) => writableEnded);
  if (response === undefined) place.untaken = null;
  else if (place.untaken?.response !== response) {
    place.untaken = { response, sinceMs: performance.now() };
  }
  return place.untaken !== null && performance.now() - place.untaken.sinceMs >= timeoutMs;
}

/**
 * The class of a server's requests. One packet can hold two thousand, and Node's parser makes objects of
 * all of them whatever becomes of the first: 70 ms and 8 MB a packet. It stops at a change of protocol
 * alone, so one too many is taken for that; Node closes the connection, as nobody listens to upgrades.
 */
export function boundedRequest(isOneTooMany: (socket: Socket) => boolean): typeof IncomingMessage {
  return class BoundedRequest extends IncomingMessage {
    constructor(socket: Socket) {
      super(socket);
      if (!isOneTooMany(socket)) return;
      Object.defineProperty(this, 'upgrade', { get: () => true, set: () => undefined });
    }
  };
}
