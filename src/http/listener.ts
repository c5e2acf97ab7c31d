/** Starts and stops a listening server with the limits that an open port needs. */
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
import { AppError } from '../domain/app-error.ts';
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
  /** Where it listens; the port is the real one when 0 was asked for. */
  address: ListenAddress;
  /** Serves new connections with another certificate; those that are open stay as they are. */
  setKeyPair(pair: KeyPair): void;
  /** Stops accepting, lets requests in hand finish within the time, then closes what is left. */
  close(graceMs: number): Promise<void>;
}

export interface ListenerOptions {
  fetch: Parameters<typeof getRequestListener>[0];
  listen: ListenAddress;
  /** Plain HTTP when absent. Null is HTTPS whose handshakes all fail until there is a pair. */
  keyPair?: KeyPair | null | undefined;
  /** A protocol whose handshakes are answered with a certificate of its own, and then ended. */
  handshakeOnly?: HandshakeOnly | undefined;
  /** The variable that holds the address, for the error when the port is taken. */
  listenVariable: string;
  limits?: Partial<ListenerLimits>;
  /**
   * A client that closes its half after a request still gets the answer. By default it counts as gone: its request is
   * aborted, which ends a query that nobody waits for.
   */
  answersHalfClosed?: boolean;
  /** Answers what never became a request for the app, such as a malformed Host. */
  onBadRequest?: (error: unknown) => Response;
}

/** Tells by ALPN (RFC 7301) which handshakes; null from `keyPair` leaves them unanswered. */
export interface HandshakeOnly {
  protocol: string;
  keyPair: () => KeyPair | null;
}

/** The bounds of an open port. A thousand connections take some 100 MB at worst; the catalogue needs a handful. */
const defaultLimits = Object.freeze({
  /** A sender that is this slow with its headers, or with a whole request, is cut off (408). */
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  /** A connection may rest this long between two requests. */
  keepAliveTimeoutMs: 60_000,
  handshakeTimeoutMs: 10_000,
  /** An answer that the other side has not read by then is dropped, and the connection with it. */
  answerTimeoutMs: 30_000,
  connectionsMax: 1_000,
  /** With all places taken, a connection over HTTPS is kept for this time before it may have to make room. */
  tenureMs: 5_000,
  /** Requests sent on one connection without waiting for answers; one more, and it is closed. */
  requestsInHandMax: 20,
});
export type ListenerLimits = Record<keyof typeof defaultLimits, number>;

/** In the order of preference. A handshake that offers other ones only ends in an alert (RFC 7301, 3.2). */
const httpProtocols = ['http/1.1', 'http/1.0'];

/** Resolves when the port is open. Rejects with `configuration` when it cannot be opened. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  let closing = false;
  const limits = { ...defaultLimits, ...options.limits };
  const handle = getRequestListener(options.fetch, {
    autoCleanupIncoming: false,
    // Stands in for a Host that is empty or absent; nothing here depends on it.
    hostname: 'localhost',
    ...(options.onBadRequest === undefined ? {} : { errorHandler: options.onBadRequest }),
  });
  const isOneTooMany = (socket: Socket) => cap.requestsInHand(socket) >= limits.requestsInHandMax;
  const requestClass = boundedRequest(isOneTooMany);
  const server = createServer(limits, requestClass, options);
  if (options.answersHalfClosed) allowHalfClosing(server);
  // Without TLS a newcomer costs next to nothing.
  const tenureMs = options.keyPair === undefined ? 0 : limits.tenureMs;
  const cap = capConnections(server, { ...limits, tenureMs });
  answerBrokenRequests(server);
  const closeUntaken = () => cap.closeUntaken(limits.answerTimeoutMs);
  const timer = setInterval(closeUntaken, Math.min(1_000, limits.answerTimeoutMs)).unref();
  server.once('close', () => clearInterval(timer));
  server.on('request', (incoming, outgoing) => {
    if (closing) outgoing.shouldKeepAlive = false;
    outgoing.once('finish', () => discardBody(incoming));
    void handle(incoming, outgoing);
  });
  // RFC 9110, 10.1.1: what else is expected but 100-continue may be passed over.
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
    // Not `end` alone: what the other side sends would still be read, and taken for a request.
    if (socket.alpnProtocol === handshakeOnly.protocol) socket.destroySoon();
  });
}

/**
 * Lets a sender that closes its half after a request get the answer. Under TLS only after the handshake: whoever
 * closes before is gone, and would keep a place until the handshake times out.
 */
function allowHalfClosing(server: Server | HttpsServer): void {
  Object.assign(server, { httpAllowHalfOpen: true });
  server.on('secureConnection', (socket: TLSSocket) => {
    socket.allowHalfOpen = true;
  });
}

/** Another certificate can be chosen once the protocol is known: what `setKeyCert` is there for. */
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
      reject(
        new AppError(
          'configuration',
          `Cannot listen on ${where}: ${reasons[cause.code ?? ''] ?? cause.code}.`,
          { advice: `Set ${listenVariable} to another address or port.`, cause },
        ),
      );
    };
    server.once('error', refuse);
    server.listen({ ...listen, backlog: 511 }, () => {
      server.off('error', refuse);
      resolve();
    });
  });
}

const reasons: Record<string, string> = {
  EADDRINUSE: 'another program uses this port, perhaps another earshot',
  EACCES: 'ports below 1024 need a permission (CAP_NET_BIND_SERVICE)',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the name does not resolve',
};

function closed(server: Server, cap: ConnectionCap, graceMs: number): Promise<void> {
  return new Promise((resolve) => {
    // Node's own closeIdleConnections passes over those that have never sent anything.
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

/** What Node's parser finds wrong beyond a plain 400. */
const statusLines: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: '431 Request Header Fields Too Large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: '413 Content Too Large',
  ERR_HTTP_REQUEST_TIMEOUT: '408 Request Timeout',
};

/**
 * Answers connections whose bytes are no request, or come too slowly. By default Node writes its 400
 * behind an early answer to the same request, where a proxy would take it for the answer to the next
 * one; and drops the answers to requests before the broken one.
 */
function answerBrokenRequests(server: Server): void {
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

/** What is recommended for answers that no browser is meant to show. */
const always = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
};
/** It holds for the name on all its ports, so it is not spread to names below it. */
const overHttps = { ...always, 'strict-transport-security': 'max-age=31536000' };

/**
 * The class of a server's responses. Headers given to `writeHead` win over these. Setting each on each response
 * would cost as much as all else that is done about headers.
 */
function safeResponse(isSecure: boolean): typeof ServerResponse {
  const safe = isSecure ? overHttps : always;
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
