/** Probes an endpoint with one GET over HTTPS, as the specification recommends before a subscription. */

import { X509Certificate } from 'node:crypto';
import { request } from 'node:http';
import { isIP } from 'node:net';
import { checkServerIdentity, connect, type PeerCertificate, type SecureContext } from 'node:tls';
import { hostOf } from '../core/http/network-address.ts';
import { contextTrusting, holdsCertificates } from '../core/http/tls-settings.ts';
import { AppError, errorCodeOf } from '../core/terms/app-error.ts';
import { clauseOf, faultOf, nextStepOf } from '../core/terms/faults.ts';
import type { CredentialPair } from '../core/terms/ports.ts';

export interface ProbeReport {
  /** Null after status 200 with a trusted certificate. The code is one of `core/terms/faults.ts`; the message follows a colon. */
  fault: { code: string; message: string; advice: string } | null;
  /** HTTP status; null without an answer. */
  status: number | null;
  /** TLS version and certificate, also a refused one; null without a handshake. */
  tls: { protocol: string | null; certificate: X509Certificate } | null;
}

/**
 * Sends one GET to an endpoint. `credentials` null sends none. Never follows redirects, never rejects: every failure is a `fault`. Messages contain no credentials.
 */
export type ProbeEndpoint = (
  endpoint: string,
  credentials: CredentialPair | null,
) => Promise<ProbeReport>;

/**
 * Creates a probe that trusts Node's and the system's authorities, and those in `extraCaPems` (PEM, one or more
 * certificates each). Throws `configuration` for a text without a certificate.
 */
export function createEndpointProbe(
  options: { extraCaPems?: readonly string[]; timeoutMs?: number } = {},
): ProbeEndpoint {
  const { extraCaPems = [], timeoutMs = 15_000 } = options;
  if (!extraCaPems.every(holdsCertificates)) {
    const message = 'The file of EARSHOT_PROBE_CA does not contain a certificate.';
    const advice = 'Set EARSHOT_PROBE_CA to a PEM file with the root certificate.';
    throw new AppError('configuration', message, { advice });
  }
  return async (endpoint, credentials) => {
    const url = URL.parse(endpoint);
    const progress: Progress = { status: null, tls: null };
    if (url?.protocol !== 'https:') return { fault: noHttps, ...progress };
    const [host, port] = [hostOf(url), url.port || '443'];
    const get = {
      path: url.pathname + url.search,
      headers: { Host: url.host },
      auth: credentials && `${credentials.username}:${credentials.password}`,
    };
    const secureContext = contextTrusting(extraCaPems);
    const ask = send({ host, port: Number(port), secureContext, timeoutMs }, get, progress);
    const reason = await ask.then(() => `HTTP ${progress.status}`, codesOf);
    return explained(progress, reason);
  };
}

/** Updated during a probe. */
type Progress = Omit<ProbeReport, 'fault'>;

/** Timeout of each address: Node's 250 ms is too short for slow networks, and hides the first failure. */
const addressTimeoutMs = 3_000;

/** Resolves after an answer. Sends nothing before the certificate is verified. */
function send(
  target: { host: string; port: number; secureContext: SecureContext; timeoutMs: number },
  get: { path: string; headers: Record<string, string>; auth: string | null },
  progress: Progress,
): Promise<void> {
  const { host, port, secureContext, timeoutMs } = target;
  return new Promise((resolve, reject) => {
    const socket = connect({
      ...{ host, port, secureContext, autoSelectFamilyAttemptTimeout: addressTimeoutMs },
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // A refused certificate must be readable for the message. `authorized` is checked below.
      rejectUnauthorized: false,
      checkServerIdentity: (name, certificate) =>
        checkServerIdentity(name, certificate) ?? refuseSelfSigned(certificate),
    });
    const fail = (code: string) => void socket.destroy(Object.assign(new Error(code), { code }));
    const timer = setTimeout(fail, timeoutMs, 'ETIMEDOUT');
    socket.once('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      if (certificate) progress.tls = { protocol: socket.getProtocol(), certificate };
      if (!socket.authorized) return fail(String(socket.authorizationError));
      const sent = request({ ...get, createConnection: () => socket });
      sent.on('error', reject).on('response', ({ statusCode = 0 }) => {
        progress.status = statusCode;
        resolve();
        socket.destroy();
      });
      sent.end();
    });
    socket.on('error', reject).on('close', () => clearTimeout(timer));
  });
}

/** Refuses a self-signed certificate even if it is configured as trusted: the catalogue refuses it. */
function refuseSelfSigned({ raw }: PeerCertificate): Error | undefined {
  const leaf = new X509Certificate(raw);
  if (leaf.subject !== leaf.issuer || !leaf.verify(leaf.publicKey)) return undefined;
  return Object.assign(new Error(), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
}

const noHttps = {
  code: 'wrong-protocol',
  message: 'it is not an https URL.',
  advice: 'Set EARSHOT_PUBLIC_URL to https://NAME, with :PORT if it is not 443.',
};

/** Returns the error codes: for several addresses there are several errors. */
function codesOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(codesOf).join(', ');
  return errorCodeOf(error);
}

/** Returns the report. `reason` is a status or the error codes. */
function explained({ status, tls }: Progress, reason: string): ProbeReport {
  if (status === 200) return { fault: null, status, tls };
  const fault = faultOf(reason);
  const { issuer = '', validToDate } = tls?.certificate ?? {};
  // Without a status, the certificate is the one that was refused.
  const shown =
    tls === null || status !== null
      ? ''
      : ` Issuer: ${issuer.replaceAll('\n', ', ')}; valid until ${validToDate?.toISOString().slice(0, 10)}.`;
  const message = `${clauseOf(reason)}.${shown}`;
  return { fault: { code: fault.code, message, advice: nextStepOf(fault) }, status, tls };
}
