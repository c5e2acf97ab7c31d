/** Starts and stops a server with the limits that a public port needs. */
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type OutgoingHttpHeader,
  type OutgoingHttpHeaders,
  type Server,
  ServerResponse,
} from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext, TLSSocket } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import { AppError } from '../terms/app-error.ts';
import { faultOf } from '../terms/faults.ts';
import { boundedRequest, type ConnectionCap, capConnections } from './connection-cap.ts';
import { hostInUrl, type ListenAddress } from './network-address.ts';
import { discardBody } from './request-body.ts';
import { tlsSettings } from './tls-settings.ts';

/** Certificate chain and private key, PEM. */
export interface KeyPair {
  cert: string;
  key: string;
}

export interface Listener {
  /** Listen address; for port 0, with the assigned port. */
  address: ListenAddress;
  /** Uses another certificate for new connections; open connections stay unchanged. */
  setKeyPair(pair: KeyPair): void;
  /** Stops accepting connections, waits for open requests for the given time, then closes all connections. */
  close(graceMs: number): Promise<void>;
}

export interface ListenerOptions {
  fetch: Parameters<typeof getRequestListener>[0];
  listen: ListenAddress;
  /** Plain HTTP if absent. Null: HTTPS, but all handshakes fail until a pair is set. */
  keyPair?: KeyPair | null | undefined;
  /** A protocol with its own certificate; its connections end after the handshake. */
  handshakeOnly?: HandshakeOnly | undefined;
  /** Environment variable of the address, for the error if the port is in use. */
  listenVariable: string;
  limits?: Partial<ListenerLimits>;
  /**
   * Responds to a client that closes its half of the connection after a request. By default, its request is aborted,
   * which ends a query without a reader.
   */
  answersHalfClosed?: boolean;
  /** Responds to a request that does not reach the app, for example one with a malformed Host. */
  onBadRequest?: (error: unknown) => Response;
}

/** Selects handshakes by ALPN (RFC 7301); if `keyPair` returns null, they are refused. */
export interface HandshakeOnly {
  protocol: string;
  keyPair: () => KeyPair | null;
}

/** Limits of a public port. A thousand connections use up to 100 MB; the catalogue needs very few. */
const defaultLimits = Object.freeze({
  /** Maximum time for the headers, and for a complete request (408). */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** Maximum idle time between two requests. */
  keepAliveTimeoutMs: 60_000,
  handshakeTimeoutMs: 10_000,
  /** Maximum time to read a response. */
  answerTimeoutMs: 30_000,
  /** Maximum time without progress on a connection, such as a response that is not sent completely. */
  stallTimeoutMs: 60_000,
  connectionsMax: 1_000,
  /** At the maximum number of connections, a new HTTPS connection is protected from being closed for this time. */
  protectionMs: 5_000,
  /** Maximum number of pipelined requests on one connection; with one more, it is closed. */
  pipelinedRequestsMax: 20,
});
export type ListenerLimits = Record<keyof typeof defaultLimits, number>;

/** In order of preference. A handshake without one of these fails (RFC 7301, 3.2). */
const httpProtocols = ['http/1.1', 'http/1.0'];

/** Resolves when the port is open. Rejects with `configuration` if it cannot be opened. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  let closing = false;
  const limits = { ...defaultLimits, ...options.limits };
  const handle = getRequestListener(options.fetch, {
    autoCleanupIncoming: false,
    // Replaces an empty or absent Host; not used otherwise.
    hostname: 'localhost',
    ...(options.onBadRequest === undefined ? {} : { errorHandler: options.onBadRequest }),
  });
  const exceedsLimit = (socket: Socket) => cap.openRequests(socket) >= limits.pipelinedRequestsMax;
  const requestClass = boundedRequest(exceedsLimit);
  const server = createServer(limits, requestClass, options);
  if (options.answersHalfClosed) allowHalfClosing(server);
  // Without TLS, a new connection costs very little.
  const protectionMs = options.keyPair === undefined ? 0 : limits.protectionMs;
  const cap = capConnections(server, { ...limits, protectionMs });
  answerBrokenRequests(server);
  server.setTimeout(limits.stallTimeoutMs);
  server.on('request', (incoming, outgoing) => {
    if (closing) outgoing.shouldKeepAlive = false;
    outgoing.once('finish', () => discardBody(incoming));
    // The client may still send bytes, so that the connection makes progress.
    outgoing.once('prefinish', () => {
      const close = () => incoming.socket.destroy();
      const timer = setTimeout(close, limits.answerTimeoutMs).unref();
      outgoing.once('close', () => clearTimeout(timer));
    });
    if (hasSeveralHosts(incoming)) {
      return void outgoing.writeHead(400, { Connection: 'close', 'Content-Length': 0 }).end();
    }
    void handle(incoming, outgoing);
  });
  // RFC 9110, 10.1.1: expectations other than 100-continue may be ignored.
  server.on('checkExpectation', (...exchange) => server.emit('request', ...exchange));
  await listening(server, options);
  const { port } = server.address() as AddressInfo;
  return {
    address: { host: options.listen.host, port },
    setKeyPair: (pair) => {
      if ('setSecureContext' in server) server.setSecureContext({ ...tlsSettings, ...pair });
    },
    close: (graceMs) => {
      closing = true;
      return closed(server, cap, graceMs);
    },
  };
}

function createServer(
  limits: ListenerLimits,
  requestClass: typeof IncomingMessage,
  { keyPair, handshakeOnly }: ListenerOptions,
): Server | HttpsServer {
  const options = {
    IncomingMessage: requestClass,
    ServerResponse: safeResponse(keyPair !== undefined),
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: Math.min(1_000, limits.headersTimeoutMs),
    maxHeaderSize: 16 * 1024,
    noDelay: true,
  };
  if (keyPair === undefined) return createHttpServer(options);
  const handshakeTimeout = limits.handshakeTimeoutMs;
  const secure = { ...options, ...tlsSettings, handshakeTimeout, ...keyPair };
  if (handshakeOnly === undefined) {
    return createHttpsServer({ ...secure, ALPNProtocols: httpProtocols });
  }
  const server = createHttpsServer({ ...secure, ALPNCallback: chooseProtocol(handshakeOnly) });
  return server.on('secureConnection', (socket) => {
    // `end` is not sufficient: data of the client would still be read as a request.
    if (socket.alpnProtocol === handshakeOnly.protocol) socket.destroySoon();
  });
}

/**
 * Allows clients to close their half of the connection after a request. With TLS, only after the handshake: otherwise
 * a closed connection would stay open until the handshake times out.
 */
function allowHalfClosing(server: Server | HttpsServer): void {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.allowHalfOpen = true;
  });
}

/** Chooses the protocol, and its certificate through `setKeyCert`. */
function chooseProtocol({ protocol, keyPair }: HandshakeOnly) {
  return function choose(this: unknown, { protocols }: { protocols: string[] }) {
    if (!protocols.includes(protocol)) {
      return httpProtocols.find((known) => protocols.includes(known));
    }
    const pair = keyPair();
    if (pair === null || !(this instanceof TLSSocket)) return undefined;
    this.setKeyCert(createSecureContext(pair));
    return protocol;
  };
}

function listening(server: Server, { listen, listenVariable }: ListenerOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    const refuse = (cause: NodeJS.ErrnoException) => {
      const where = `${hostInUrl(listen.host)}:${listen.port}`;
      const fault = faultOf('listen');
      const message = `Cannot listen on ${where}: ${fault.clause} (${cause.code}).`;
      const advice = `Set ${listenVariable} to another address or port. See docs/errors.md#${fault.code}.`;
      const facts = { fault: fault.code, variable: listenVariable };
      reject(new AppError('configuration', message, { advice, cause, facts }));
    };
    server.once('error', refuse);
    server.listen({ ...listen, backlog: 511 }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
}

function closed(server: Server, cap: ConnectionCap, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // Node's closeIdleConnections ignores connections that have never sent anything.
    const idleTimer = setInterval(() => cap.closeIdle(), 50);
    const graceTimer = setTimeout(() => server.closeAllConnections(), graceMs);
    server.close(() => {
      clearInterval(idleTimer);
      clearTimeout(graceTimer);
      resolve();
    });
    cap.closeIdle();
  });
}

/** Node uses the first Host, a proxy perhaps another one (RFC 9112, 3.2: 400). */
function hasSeveralHosts({ rawHeaders, headers: { host } }: IncomingMessage): boolean {
  const isHost = (name: string, i: number) => i % 2 === 0 && name.toLowerCase() === 'host';
  return rawHeaders.filter(isHost).length > 1 || host?.includes(',') === true;
}

/** Status lines for errors of Node's parser other than 400. */
const statusLines: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Content Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/**
 * Responds to malformed and slow requests. By default, Node writes its 400 after an early response to the
 * same request, where a proxy would read it as the response to the next one; and Node drops the responses
 * to previous requests.
 */
function answerBrokenRequests(server: Server): void {
  const latest = new WeakMap<Duplex, ServerResponse>();
  server.on('request', (incoming, outgoing) => void latest.set(incoming.socket, outgoing));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const { code = '' } = error;
    const statusLine = statusLines[code] ?? (code.startsWith('HPE_') ? '400 Bad Request' : null);
    // A failed handshake or a reset connection: no response is possible.
    if (statusLine === null || !socket.writable) return void socket.destroy();
    const outgoing = latest.get(socket);
    // Node itself has refused the request before these bytes, such as one without Host.
    if (outgoing === undefined && code === 'HPE_CLOSED_CONNECTION') {
      return void socket.end(() => socket.destroy());
    }
    if (outgoing !== undefined && endsWith(outgoing)) return;
    socket.end(`HTTP/1.1 ${statusLine}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`, () =>
      socket.destroy(),
    );
  });
}

/** True if the connection ends after a response that is already sent or in progress. */
function endsWith(outgoing: ServerResponse): boolean {
  const { req: incoming, headersSent } = outgoing;
  if (incoming.complete) {
    if (outgoing.writableFinished) return false;
    // The malformed data comes after this request.
    outgoing.shouldKeepAlive = false;
  } else if (!headersSent) return false;
  if (headersSent) incoming.socket.destroySoon();
  return true;
}

/** Recommended headers for responses that browsers must not display. */
const commonHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};
/** HSTS applies to all ports of the name, so it does not include subdomains. */
const httpsHeaders = { ...commonHeaders, 'strict-transport-security': 'max-age=31536000' };

/**
 * Creates the class of a server's responses. Headers passed to `writeHead` override the safe ones. Setting each header
 * separately would double the cost of all headers.
 */
function safeResponse(isSecure: boolean): typeof ServerResponse {
  const safe = isSecure ? httpsHeaders : commonHeaders;
  return class SafeResponse<Request extends IncomingMessage> extends ServerResponse<Request> {
    override writeHead(
      status: number,
      reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
      headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
    ): this {
      if (typeof reason === 'string')
        return super.writeHead(status, reason, withSafe(safe, headers));
      return super.writeHead(status, withSafe(safe, reason));
    }
  };
}

function withSafe(
  safe: Readonly<Record<string, string>>,
  given: OutgoingHttpHeaders | OutgoingHttpHeader[] = {},
): OutgoingHttpHeaders | OutgoingHttpHeader[] {
  if (Array.isArray(given)) return [...given, ...Object.entries(safe).flat()];
  const all: OutgoingHttpHeaders = { ...safe, ...given };
  for (const name of Object.keys(given)) {
    const lower = name.toLowerCase();
    if (lower !== name) delete all[lower];
  }
  return all;
}
