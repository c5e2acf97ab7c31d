/** A `fetch` for a service whose certificate is of an authority of the user's own. */

import type { IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { Readable } from 'node:stream';
import { UnusableAnswer } from '../http/bounded-fetch.ts';
import { contextTrusting } from '../http/tls-settings.ts';

export interface TrustingFetch {
  /** Takes a `Request` of an https URL; answers as the platform's own does, without following redirects. */
  fetch: typeof fetch;
  /** Closes connections that are kept open. */
  close(): void;
}

/** Trusts the authorities in `pem` besides the public ones and the system's. */
export function createTrustingFetch(pem: string): TrustingFetch {
  const agent = new Agent({
    keepAlive: true,
    secureContext: contextTrusting([pem]),
    // Stated, because an environment variable could otherwise switch the checks off.
    rejectUnauthorized: true,
  });
  const send: typeof fetch = async (input, init) => {
    const asked = new Request(input, init);
    // That of the request merely follows it, and may be forgotten before it is told.
    const signal = init?.signal ?? asked.signal;
    const body = Buffer.from(await asked.arrayBuffer());
    return new Promise((resolve, reject) => {
      const { method } = asked;
      const headers = { ...Object.fromEntries(asked.headers), 'content-length': body.byteLength };
      // Ends the answer's body, too.
      const sent = request(asked.url, { method, headers, signal, agent });
      // Node's own error for an abort does not tell a timeout: the signal does.
      const fail = (error: unknown) => reject(signal.aborted ? signal.reason : error);
      sent.on('response', (incoming) => {
        // Whatever is thrown in a listener would end the program.
        try {
          resolve(responseOf(incoming));
        } catch (error) {
          incoming.destroy();
          fail(error);
        }
      });
      sent.on('upgrade', ({ statusCode }, socket) => {
        socket.destroy();
        fail(new UnusableAnswer(`it answered ${statusCode}: it wants to speak another protocol`));
      });
      sent.on('error', fail);
      sent.on('close', () =>
        fail(new UnusableAnswer('it closed the connection without an answer')),
      );
      sent.end(body);
    });
  };
  return { fetch: send, close: () => agent.destroy() };
}

/** Throws UnusableAnswer for a status that is none. */
function responseOf(incoming: IncomingMessage): Response {
  const headers = new Headers();
  for (let i = 0; i < incoming.rawHeaders.length; i += 2) {
    headers.append(incoming.rawHeaders[i] ?? '', incoming.rawHeaders[i + 1] ?? '');
  }
  const status = incoming.statusCode ?? 0;
  if (status < 200 || status > 599) {
    throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
  }
  const isEmpty = [204, 205, 304].includes(status);
  if (isEmpty) incoming.resume();
  const body = isEmpty ? null : (Readable.toWeb(incoming) as ReadableStream<Uint8Array>);
  return new Response(body, { status, statusText: incoming.statusMessage ?? '', headers });
}
