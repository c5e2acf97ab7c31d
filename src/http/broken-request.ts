/** Answers what cannot be read as a request, and never a request that has its answer already. */
import type { Server, ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

/** What Node's parser finds wrong beyond a plain 400. */
const statusLines: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Content Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/**
 * Sees to connections whose bytes are no request, or come too slowly. Node by itself writes its 400
 * behind an early answer to the same request, where a proxy would take it for the answer to the next
 * one; and drops the answers that requests before the broken one still have to get.
 */
export function answerBrokenRequests(server: Server): void {
  const latest = new WeakMap<Duplex, ServerResponse>();
  server.on('request', (incoming, outgoing) => void latest.set(incoming.socket, outgoing));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { code = '' } = error;
    const statusLine = statusLines[code] ?? (code.startsWith('HPE_') ? '400 Bad Request' : null);
    // A handshake that failed, or a connection that was reset: there is nobody to answer.
    if (statusLine === null || !socket.writable) return void socket.destroy();
    const outgoing = latest.get(socket);
    if (outgoing !== undefined && endsWith(outgoing)) return;
    socket.end(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () =>
      socket.destroy(),
    );
  });
}

/** Whether the connection ends by itself, with an answer that is on its way or was given. */
function endsWith(outgoing: ServerResponse): boolean {
  const { req: incoming, headersSent } = outgoing;
  if (incoming.complete) {
    if (outgoing.writableFinished) return false;
    // What is broken comes after it.
    outgoing.shouldKeepAlive = false;
  } else if (!headersSent) return false;
  if (headersSent) incoming.socket.destroySoon();
  return true;
}
