/** Ends a connection at the request that is one too many, before the rest of its packet is parsed. */
import { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

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
