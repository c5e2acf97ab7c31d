/** Makes one attempt to hand a notification to the user's endpoint, as the catalogue does. */
import * as http from 'node:http';
import * as https from 'node:https';
import type { EndpointRules } from '../account/endpoint-rules.ts';
import type { EndpointAddress } from '../account/subscription.ts';
import { lookupLoopback } from '../loopback.ts';
import { createEndpointTrust } from './endpoint-trust.ts';

export interface DelivererOptions extends EndpointRules {
  /** Authorities trusted besides Node's and the system's, PEM. */
  readonly trustedCaPems?: readonly string[];
  /** Time for a complete answer, ms; 30 s unless told. */
  readonly timeoutMs?: number;
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
  /**
   * Sends one body once to an address that the rules allow. Never rejects: every failure is an attempt
   * with an `error`. Redirects are not followed. `encoding` is the Content-Encoding; none by default.
   */
  deliver(
    address: EndpointAddress,
    body: Buffer,
    signal?: AbortSignal,
    encoding?: string | null,
  ): Promise<Attempt>;
  /** Closes the connections that are kept open. */
  close(): void;
}

/** Connections for one subscription at the same time. */
export const socketsMax = 8;

const timeoutDefaultMs = 30_000;
const answerBytesMax = 64 * 1024;

/** Creates a sender. Throws SandboxConfigurationError for an authority that is not a certificate. */
export function createDeliverer(options: DelivererOptions): Deliverer {
  const { timeoutMs = timeoutDefaultMs, now } = options;
  const agents = createAgents(options);

  const answerOf = (
    address: EndpointAddress,
    body: Buffer,
    encoding: string | null,
    signal: AbortSignal | undefined,
  ) =>
    new Promise<number>((resolve, reject) => {
      const url = new URL(address.endpoint);
      const send = url.protocol === 'http:' ? http.request : https.request;
      const agent = url.protocol === 'http:' ? agents.plain : agents.secure;
      const request = send(url, {
        method: 'POST',
        agent,
        headers: headersOf(address, body, encoding),
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
    deliver: async (address, body, signal, encoding = null) => {
      const startedMs = now();
      const outcome =
        signal?.aborted === true
          ? { status: null, error: 'not sent: the sandbox was closed' }
          : await answerOf(address, body, encoding, signal).then(
              (status) => ({ status, error: null }),
              (error: unknown) => ({ status: null, error: describe(error) }),
            );
      return { durationMs: Math.max(0, now() - startedMs), ...outcome };
    },
    close: () => {
      agents.plain.destroy();
      agents.secure.destroy();
    },
  };
}

/** True for an answer that counts as delivered, which every 2xx does. Which ones the real service takes is not known. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

function createAgents(options: DelivererOptions) {
  const pool = {
    keepAlive: true,
    maxFreeSockets: socketsMax,
    ...(options.allowRemote ? {} : { lookup: lookupLoopback }),
  };
  const trust = createEndpointTrust(options.trustedCaPems ?? []);
  return {
    plain: new http.Agent(pool),
    // Stated, because an environment variable could otherwise switch the checks off.
    secure: new https.Agent({ ...pool, ...trust, rejectUnauthorized: true }),
  };
}

/** Basic credentials go as UTF-8; the name has no colon, the password may. */
function headersOf({ username, password }: EndpointAddress, body: Buffer, encoding: string | null) {
  const headers = {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    ...(encoding === null ? {} : { 'Content-Encoding': encoding }),
  };
  if (username === null && password === null) return headers;
  const pair = Buffer.from(`${username ?? ''}:${password ?? ''}`, 'utf8').toString('base64');
  return { ...headers, Authorization: `Basic ${pair}` };
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
