/** Makes one attempt to deliver a notification to the user's endpoint, like the catalogue. */
import { X509Certificate } from 'node:crypto';
import * as http from 'node:http';
import * as https from 'node:https';
import {
  checkServerIdentity,
  createSecureContext,
  getCACertificates,
  type PeerCertificate,
} from 'node:tls';
import type { EndpointAddress } from '../account.ts';
import { SandboxConfigurationError } from '../live-settings.ts';
import { lookupLoopback } from '../local-server.ts';

export interface DelivererOptions {
  /** Allows an endpoint on another machine. */
  readonly allowRemote?: boolean;
  /** Certificate authorities trusted in addition to Node's and the system's, PEM. */
  readonly trustedCaPems?: readonly string[];
  /** Timeout for a complete answer, ms (default: 30 s). */
  readonly timeoutMs?: number;
  /** Clock for durations, ms. */
  readonly now: () => number;
}

/** Result of one attempt: `status` of a complete answer, otherwise `error`. */
export interface Attempt {
  readonly durationMs: number;
  readonly status: number | null;
  /** Code and message, without body and credentials. */
  readonly error: string | null;
}

/** Result with the error code of Node or OpenSSL; null if there is none. */
type CodedAttempt = Attempt & { readonly code: string | null };

/** Maximum number of concurrent connections of one subscription. */
export const socketsMax = 8;

const answerBytesMax = 64 * 1024;

export type Deliverer = ReturnType<typeof createDeliverer>;

/** Creates a deliverer. Throws SandboxConfigurationError if an authority is not a certificate. */
export function createDeliverer(options: DelivererOptions) {
  const { timeoutMs = 30_000, now } = options;
  const agents = createAgents(options);

  const send = (
    address: EndpointAddress,
    body: Buffer,
    signal: AbortSignal | undefined,
    encoding: string | null,
  ) =>
    new Promise<number>((resolve, reject) => {
      const url = new URL(address.endpoint);
      const isPlain = url.protocol === 'http:';
      const headers = headersOf(address, body, encoding);
      const agent = isPlain ? agents.plain : agents.secure();
      const request = (isPlain ? http : https).request(url, { method: 'POST', agent, headers });
      const abort = () => request.destroy(new Error('aborted: the sandbox was closed'));
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
    /**
     * Sends one body once. Never rejects: a failure is an attempt with an `error`. Does not follow redirects.
     * `encoding` is the Content-Encoding (default: none).
     */
    deliver: async (
      address: EndpointAddress,
      body: Buffer,
      signal?: AbortSignal,
      encoding: string | null = null,
    ): Promise<CodedAttempt> => {
      const startedMs = now();
      const outcome =
        signal?.aborted === true
          ? { status: null, error: 'not sent: the sandbox was closed', code: null }
          : await send(address, body, signal, encoding).then(
              (status) => ({ status, error: null, code: null }),
              (error: unknown) => ({ status: null, error: describe(error), code: codeOf(error) }),
            );
      return { durationMs: Math.max(0, now() - startedMs), ...outcome };
    },
    /** Closes idle and open connections. */
    close: () => {
      agents.close();
    },
  };
}

/** Returns true for 2xx, which counts as delivered. The statuses that the real service accepts are not known. */
export function isSuccess(status: number | null): boolean {
  return status !== null && status >= 200 && status <= 299;
}

/** Creates agents that trust public authorities and `trustedCaPems`, but no self-signed certificate. */
function createAgents({ allowRemote, trustedCaPems = [] }: DelivererOptions) {
  trustedCaPems.forEach(assertCertificate);
  const pool = {
    keepAlive: true,
    maxFreeSockets: socketsMax,
    ...(allowRemote ? {} : { lookup: lookupLoopback }),
  };
  const plain = new http.Agent(pool);
  let secure: https.Agent | undefined;
  return {
    plain,
    // Created once, at the first use: parsing over a hundred authorities costs more than a handshake.
    secure: () => (secure ??= new https.Agent({ ...pool, ...trustIn(trustedCaPems) })),
    close: () => {
      plain.destroy();
      secure?.destroy();
    },
  };
}

function trustIn(trustedCaPems: readonly string[]): https.AgentOptions {
  const authorities = ['default', 'system'] as const;
  const ca = new Set([...authorities.flatMap((type) => getCACertificates(type)), ...trustedCaPems]);
  return {
    secureContext: createSecureContext({ ca: [...ca] }),
    checkServerIdentity: (host, certificate) =>
      checkServerIdentity(host, certificate) ?? refuseSelfSigned(certificate),
    // Explicit, because an environment variable could otherwise disable the checks.
    rejectUnauthorized: true,
  };
}

function refuseSelfSigned({ raw }: PeerCertificate): Error | undefined {
  const leaf = new X509Certificate(raw);
  // Even a trusted one fails: the catalogue refuses self-signed certificates.
  if (leaf.subject !== leaf.issuer || !leaf.verify(leaf.publicKey)) return undefined;
  const error = new Error(
    'the certificate is self-signed; the catalogue refuses such certificates',
  );
  return Object.assign(error, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
}

function assertCertificate(pem: string, index: number): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new SandboxConfigurationError(
      `Trusted authority ${index + 1} is not a PEM certificate. Provide the root certificate, from BEGIN CERTIFICATE to END CERTIFICATE.`,
      { cause },
    );
  }
}

/** Basic credentials are UTF-8. The user name has no colon; the password may have one. */
function headersOf({ username, password }: EndpointAddress, body: Buffer, encoding: string | null) {
  const pair = Buffer.from(`${username ?? ''}:${password ?? ''}`, 'utf8').toString('base64');
  const hasCredentials = username !== null || password !== null;
  return {
    'Content-Type': 'application/json',
    'Content-Length': body.length,
    ...(encoding === null ? {} : { 'Content-Encoding': encoding }),
    ...(hasCredentials ? { Authorization: `Basic ${pair}` } : {}),
  };
}

/** Reads an answer to its end (maximum 64 KiB) and returns its status. */
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

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error ? String(error.code) : null;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  // A host with several addresses fails with an empty message and one error per address.
  const parts = error instanceof AggregateError ? error.errors.map(describe) : [];
  return `${code === null ? '' : `${code}: `}${error.message || parts.join('; ')}`;
}
