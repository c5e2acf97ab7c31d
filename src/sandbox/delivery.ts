/** Makes one attempt to hand a notification to the user's endpoint, as the catalogue does. */
import * as http from 'node:http';
import * as https from 'node:https';
import { SandboxConfigurationError } from './configuration-error.ts';
import { createEndpointTrust } from './endpoint-trust.ts';
import { isLoopbackHost, lookupLoopback } from './loopback.ts';

export interface DelivererOptions {
  readonly endpoint: URL;
  /** Basic credentials, sent as UTF-8; the name has no colon, the password may. */
  readonly username: string;
  readonly password: string;
  /** Authorities trusted besides Node's and the system's, PEM. */
  readonly trustedCaPems?: readonly string[];
  /** Time for a complete answer, ms; 30 s unless told. */
  readonly timeoutMs?: number;
  /** Allows an endpoint on another machine. */
  readonly allowRemote?: boolean;
  /** Allows `http://`, for an endpoint behind a proxy that does the TLS. */
  readonly allowPlainHttp?: boolean;
  /** A clock for durations, ms. */
  readonly now: () => number;
}

/** What came of one attempt: `status` when a complete answer came, `error` when none did. */
export interface Attempt {
  readonly durationMs: number;
  readonly status: number | null;
  /** Code and message; holds neither body nor credentials. */
  readonly error: string | null;
}

export interface Deliverer {
  /** Sends one body once. Never rejects: every failure is an attempt with an `error`. */
  deliver(body: Buffer, signal?: AbortSignal): Promise<Attempt>;
  /** Closes the connections that are kept open. */
  close(): void;
}

/** Connections to the endpoint at the same time. */
export const socketsMax = 8;

const timeoutDefaultMs = 30_000;
const answerBytesMax = 64 * 1024;

/**
 * Creates a sender for one endpoint. Redirects are not followed. Throws SandboxConfigurationError for
 * an endpoint that is not https, is not on this machine (unless allowed), or has credentials in its URL.
 */
export function createDeliverer(options: DelivererOptions): Deliverer {
  const { endpoint, timeoutMs = timeoutDefaultMs, now } = options;
  assertEndpoint(options);
  const agent = createAgent(options);
  const send = endpoint.protocol === 'https:' ? https.request : http.request;
  const headers = {
    'Content-Type': 'application/json',
    Authorization: toBasic(options),
  };

  const answerOf = (body: Buffer, signal: AbortSignal | undefined) =>
    new Promise<number>((resolve, reject) => {
      const request = send(endpoint, {
        method: 'POST',
        agent,
        headers: { ...headers, 'Content-Length': body.length },
      });
      const abort = () => request.destroy(new Error('given up: the sandbox was closed'));
      const timer = setTimeout(() => {
        request.destroy(new Error(`no complete answer within ${timeoutMs} ms`));
      }, timeoutMs);
      signal?.addEventListener('abort', abort);
      request.on('response', (response) => readStatus(response).then(resolve, reject));
      request.on('error', reject);
      request.on('close', () => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', abort);
      });
      request.end(body);
    });

  return {
    deliver: async (body, signal) => {
      const startedMs = now();
      const outcome =
        signal?.aborted === true
          ? { status: null, error: 'not sent: the sandbox was closed' }
          : await answerOf(body, signal).then(
              (status) => ({ status, error: null }),
              (error: unknown) => ({ status: null, error: describe(error) }),
            );
      return { durationMs: Math.max(0, now() - startedMs), ...outcome };
    },
    close: () => agent.destroy(),
  };
}

/** True for an answer that counts as delivered, which every 2xx does. Which ones the real service takes is not known. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

function assertEndpoint({ endpoint, username, allowRemote, allowPlainHttp }: DelivererOptions) {
  const refuse = (message: string) => {
    throw new SandboxConfigurationError(message);
  };
  if (endpoint.protocol !== 'https:' && !(endpoint.protocol === 'http:' && allowPlainHttp)) {
    refuse(
      `The endpoint begins with ${endpoint.protocol}; it must begin with https://, as the catalogue delivers to nothing else.`,
    );
  }
  if (endpoint.username !== '' || endpoint.password !== '') {
    refuse('The endpoint has credentials in its URL; give them as user name and password.');
  }
  if (username.includes(':')) {
    refuse('The user name has a colon, which Basic Authentication cannot carry; choose another.');
  }
  if (!allowRemote && !isLoopbackHost(endpoint.hostname)) {
    refuse(
      `The endpoint ${endpoint.host} is not on this machine. The sandbox stays on localhost, 127.0.0.0/8 and [::1] so that nobody is flooded by mistake; add --allow-remote if this one is yours.`,
    );
  }
}

function createAgent(options: DelivererOptions): http.Agent {
  const pool = {
    keepAlive: true,
    maxSockets: socketsMax,
    maxFreeSockets: socketsMax,
    ...(options.allowRemote ? {} : { lookup: lookupLoopback }),
  };
  if (options.endpoint.protocol === 'http:') return new http.Agent(pool);
  const trust = createEndpointTrust(options.trustedCaPems ?? []);
  // Stated, because an environment variable could otherwise switch the checks off.
  return new https.Agent({ ...pool, ...trust, rejectUnauthorized: true });
}

function toBasic({ username, password }: DelivererOptions): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

/** Reads an answer to its end, or as far as anyone would want, and gives its status. */
function readStatus(response: http.IncomingMessage): Promise<number> {
  const status = response.statusCode ?? 0;
  return new Promise((resolve, reject) => {
    let readBytes = 0;
    response.on('data', (chunk: Buffer) => {
      readBytes += chunk.length;
      if (readBytes <= answerBytesMax) return;
      resolve(status);
      response.destroy();
    });
    response.on('end', () => resolve(status));
    response.on('error', reject);
  });
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? `${String(error.code)}: ` : '';
  // A host with several addresses fails with one error for each, and an empty message of its own.
  const parts = error instanceof AggregateError ? error.errors.map(describe) : [];
  return `${code}${error.message || parts.join('; ')}`;
}
