/** One keep-alive TLS connection with one request in flight, written from a prebuilt buffer. */
import { connect, type TLSSocket } from 'node:tls';
import { createResponseParser } from './http-response-parser.ts';

/** Where and how to connect. */
export interface ConnectionTarget {
  readonly host: string;
  readonly port: number;
  /** PEM of the authority that signed the server's certificate. */
  readonly authorityPem: string;
}

/** What the owner of a connection decides and learns. */
export interface ConnectionEvents {
  /** The next request's bytes, not changed again until its answer; undefined to send no more. */
  nextRequest(): Buffer | undefined;
  onAnswer(status: number): void;
  /**
   * The connection broke; a request that was in flight has no answer.
   * Returns whether to connect again.
   */
  onBreak(reason: string): boolean;
}

const reconnectDelayMs = 100;

/** Keeps a connection busy until `nextRequest` has no more. Resolves when it has been closed. */
export function keepBusy(target: ConnectionTarget, events: ConnectionEvents): Promise<void> {
  return new Promise((resolve) => {
    const open = () => {
      const socket = connect({
        host: target.host,
        port: target.port,
        ca: target.authorityPem,
        servername: 'localhost',
      });
      serve(socket, events, (connectAgain) => {
        if (connectAgain) setTimeout(open, reconnectDelayMs);
        else resolve();
      });
    };
    open();
  });
}

/** Runs one socket; `onClosed` is told whether a new connection is wanted. */
function serve(
  socket: TLSSocket,
  events: ConnectionEvents,
  onClosed: (connectAgain: boolean) => void,
): void {
  const parser = createResponseParser();
  let finished = false;
  let closedPolitely = false;
  let reason = 'closed by the server';
  const send = () => {
    const request = events.nextRequest();
    if (request !== undefined) {
      socket.write(request);
      return;
    }
    finished = true;
    socket.end();
  };
  socket.setNoDelay(true);
  socket.on('secureConnect', send);
  socket.on('data', (chunk) => {
    try {
      const head = parser.push(chunk);
      if (head === undefined) return;
      events.onAnswer(head.status);
      if (head.closes) closedPolitely = true;
      else send();
    } catch (error) {
      socket.destroy(error instanceof Error ? error : new Error(String(error)));
    }
  });
  socket.on('error', (error) => {
    reason = error.message;
  });
  socket.on('close', () => {
    if (finished) onClosed(false);
    else if (closedPolitely) onClosed(true);
    else onClosed(events.onBreak(reason));
  });
}
