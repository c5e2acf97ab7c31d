/** Starts and stops a listening server with the limits that an open port needs. */
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { createSecureContext, TLSSocket } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import { AppError } from '../domain/app-error.ts';
import { boundedRequest } from './bounded-request.ts';
import { answerBrokenRequests } from './broken-request.ts';
import { type ConnectionCap, capConnections } from './connection-cap.ts';
import { hostInUrl, type ListenAddress } from './listen-address.ts';
import { discardBody } from './read-body.ts';
import { safeResponse } from './safe-response.ts';
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

/** How long and how many: what an open port must bound. */
export interface ListenerLimits {
  /** A sender that is this slow with its headers, or with a whole request, is cut off (408). */
  headersTimeoutMs: number;
  requestTimeoutMs: number;
  /** A connection may rest this long between two requests. */
  keepAliveTimeoutMs: number;
  handshakeTimeoutMs: number;
  /** An answer that the other side has not taken by then is dropped, and the connection with it. */
  answerTimeoutMs: number;
  connectionsMax: number;
  /** With all places taken, one over HTTPS is kept for so long before it may have to make room. */
  tenureMs: number;
  /** Requests sent on one connection without waiting for answers; one more, and it is closed. */
  requestsInHandMax: number;
}

/** A thousand connections take some 100 MB at worst; the catalogue needs a handful. */
export const defaultLimits: Readonly<ListenerLimits> = Object.freeze({
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 60_000,
  handshakeTimeoutMs: 10_000,
  answerTimeoutMs: 30_000,
  connectionsMax: 1_000,
  tenureMs: 5_000,
  requestsInHandMax: 20,
});

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
  const server = createServer(limits, { ...options, requestClass });
  if (options.answersHalfClosed) allowHalfClosing(server);
  // Without TLS a newcomer costs next to nothing.
  const tenureMs = options.keyPair === undefined ? 0 : limits.tenureMs;
  const cap = capConnections(server, { ...limits, tenureMs });
  answerBrokenRequests(server);
  const closeUntaken = () => cap.closeUntaken(limits.answerTimeoutMs);
  const lookEveryMs = Math.min(1_000, limits.answerTimeoutMs);
  const timer = setInterval(closeUntaken, lookEveryMs).unref();
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
  {
    keyPair,
    handshakeOnly,
    requestClass,
  }: Pick<ListenerOptions, 'keyPair' | 'handshakeOnly'> & { requestClass: typeof IncomingMessage },
): Server | HttpsServer {
  const options = {
    IncomingMessage: requestClass,
    ServerResponse: safeResponse({ isSecure: keyPair !== undefined }),
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
