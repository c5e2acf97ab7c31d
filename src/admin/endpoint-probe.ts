/** Probes an endpoint with one GET over HTTPS, as the specification recommends before a subscription. */
import { X509Certificate } from 'node:crypto';
import { request } from 'node:http';
import { isIP } from 'node:net';
import { checkServerIdentity, connect, type PeerCertificate, type SecureContext } from 'node:tls';
import { AppError, errorCodeOf } from '../domain/app-error.ts';
import { probeProofHeader } from '../http/probe-proof.ts';
import { contextTrusting, holdsCertificates } from '../http/tls-settings.ts';
import type { EndpointCredentials } from './subscription-client.ts';

/** Stages of a probe, in order. */
type Stage = 'name' | 'connection' | 'certificate' | 'answer';

export interface ProbeReport {
  /** Null after status 200 with a trusted certificate. The message is one sentence with the reason. */
  fault: { stage: Stage; message: string; advice: string } | null;
  /** HTTP status; null without an answer. */
  status: number | null;
  /** TLS version and certificate, also a refused one; null without a handshake. */
  tls: { protocol: string | null; certificate: X509Certificate } | null;
}

/**
 * Sends one GET to an endpoint. `credentials` null sends none; with `proof`, the receiver does not count it as a
 * failed login. Never follows redirects, never rejects: every failure is a `fault`. Messages contain no credentials.
 */
export type ProbeEndpoint = (
  endpoint: string,
  credentials: EndpointCredentials | null,
  proof?: string | null,
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
  const secureContext = contextTrusting(extraCaPems);
  return async (endpoint, credentials, proof = null) => {
    const url = URL.parse(endpoint);
    const progress: Progress = { stage: 'name', status: null, tls: null };
    if (url?.protocol !== 'https:') return explained(progress, 'NO_HTTPS', {});
    const [host, port] = [hostOf(url), url.port || '443'];
    const get = {
      path: url.pathname + url.search,
      headers: { Host: url.host, ...(proof === null ? {} : { [probeProofHeader]: proof }) },
      auth: credentials && `${credentials.username}:${credentials.password}`,
    };
    const ask = send({ host, port: Number(port), secureContext, timeoutMs }, get, progress);
    const codes = await ask.then(() => '', codesOf);
    return explained(progress, codes, { host, port, seconds: String(timeoutMs / 1000) });
  };
}

/** Returns the host of a URL, an IPv6 address without brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, '$1');
}

/** Updated during a probe. */
type Progress = Omit<ProbeReport, 'fault'> & { stage: Stage };

/** Timeout of each address: Node's 250 ms is too short for slow networks, and hides the first failure. */
const addressTimeoutMs = 3_000;

/** Resolves after an answer. Sends nothing before the certificate is verified. */
function send(
  target: { host: string; port: number; secureContext: SecureContext; timeoutMs: number },
  get: { path: string; headers: Record<string, string>; auth: string | null },
  progress: Progress,
): Promise<void> {
  const { host, port, secureContext, timeoutMs } = target;
  if (isIP(host) !== 0) progress.stage = 'connection';
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
    const timer = setTimeout(fail, timeoutMs, timeoutCode);
    socket.once('lookup', (error) => {
      if (!error) progress.stage = 'connection';
    });
    socket.once('connect', () => {
      progress.stage = 'certificate';
    });
    socket.once('secureConnect', () => {
      const certificate = socket.getPeerX509Certificate();
      if (certificate) progress.tls = { protocol: socket.getProtocol(), certificate };
      if (!socket.authorized) return fail(String(socket.authorizationError));
      progress.stage = 'answer';
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

const timeoutCode = 'PROBE_TIMEOUT';

type Texts = readonly [message: string, advice: string];

const publicAuthority =
  "Use a certificate of a public authority, such as Let's Encrypt. To test with a private authority, set EARSHOT_PROBE_CA.";

/**
 * Explanations by stage. A key is a pattern of error codes (Node, OpenSSL) or statuses; the first match applies. Names
 * in braces stand for values.
 */
const faults: Record<Stage, Record<string, Texts>> = {
  name: {
    NO_HTTPS: [
      'The endpoint is not an https URL.',
      'Set EARSHOT_PUBLIC_URL to https://NAME, with :PORT if it is not 443.',
    ],
    '': [
      'The name {host} does not resolve to an address ({reason}).',
      'Check the spelling in EARSHOT_PUBLIC_URL and the A record of the name.',
    ],
  },
  connection: {
    ECONNREFUSED: [
      '{host} refuses connections on port {port}: no program listens on this port.',
      'Start the receiver (`earshot start`), and check the port in EARSHOT_LISTEN or in the proxy.',
    ],
    '': [
      '{host} cannot be reached on port {port} ({reason}).',
      'Open TCP port {port} in all firewalls, and check the A and AAAA records of the name.',
    ],
  },
  certificate: {
    DEPTH_ZERO_SELF_SIGNED: [
      'The certificate is self-signed, and the catalogue refuses such certificates.',
      publicAuthority,
    ],
    'UNABLE_TO_GET_ISSUER_CERT\\b|UNABLE_TO_VERIFY_LEAF': [
      'The intermediate certificates are missing{issuer}.',
      'Serve the full chain (fullchain.pem, not cert.pem). If the chain is already complete, the authority is not publicly trusted.',
    ],
    'CERT_HAS_EXPIRED|CERT_NOT_YET_VALID': [
      'A certificate has expired or is not valid yet ({reason}, certificate valid until {day}).',
      'Renew the certificate and restart the receiver. Check the clock of this machine (`timedatectl`).',
    ],
    ALTNAME_INVALID: [
      'The certificate is not valid for {host}.',
      'Get a certificate for {host}, or use the name of the certificate in EARSHOT_PUBLIC_URL.',
    ],
    'ECONN|EPROTO|EPIPE|ETIMEDOUT|PROBE_TIMEOUT|ERR_SSL|unknown': [
      'The TLS handshake on port {port} failed ({reason}). The port possibly does not use HTTPS.',
      'Check that the server on this port has a certificate (`earshot certificate show`) and TLS 1.2 or 1.3, and check its log.',
    ],
    '': ['The certificate is not publicly trusted: {reason}{issuer}.', publicAuthority],
  },
  answer: {
    '^3': [
      'The endpoint returns {reason}, a redirect that the catalogue possibly does not follow.',
      'Set EARSHOT_PUBLIC_URL to the target of the redirect.',
    ],
    '^(401|429)': [
      'The endpoint returns {reason}: the running receiver has other credentials.',
      'If the credentials changed after its start, restart the receiver. A proxy must pass on the Authorization header.',
    ],
    '^5': [
      'The endpoint returns {reason}: the receiver has an error, or a proxy cannot reach it.',
      'Check the log of the receiver, and the address in the configuration of the proxy.',
    ],
    '^\\d': [
      'The endpoint returns {reason}: another program or a firewall answers, or the path is wrong.',
      'Check that the receiver uses this port, and that any proxy keeps the path /notifications.',
    ],
    '': [
      'Port {port} sent no complete HTTP answer ({reason}).',
      'Check that the receiver listens on this port, and check the logs of the receiver and the proxy.',
    ],
  },
};

/** Returns the error codes: for several addresses there are several errors. */
function codesOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(codesOf).join(', ');
  return errorCodeOf(error);
}

/** Returns the report, with an explanation of the status or the error codes. */
function explained(
  { stage, status, tls }: Progress,
  codes: string,
  values: Record<string, string>,
): ProbeReport {
  if (status === 200) return { fault: null, status, tls };
  // With TLS 1.3, the client may finish the handshake before the server refuses it.
  const at = /EPROTO|ERR_SSL/.test(codes) ? 'certificate' : stage;
  const result = status === null ? codes : String(status);
  const rows = Object.entries(faults[at]);
  const [, texts] = rows.find(([key]) => new RegExp(key, 'i').test(result)) ?? [];
  const all: Record<string, string> = {
    ...values,
    reason: codes === timeoutCode ? `no answer within ${values.seconds} s` : result,
    issuer: tls === null ? '' : ` (issuer: ${tls.certificate.issuer.replaceAll('\n', ', ')})`,
    day: tls?.certificate.validToDate.toISOString().slice(0, 10) ?? '',
  };
  const [message = '', advice = ''] = (texts ?? []).map((text) =>
    text.replaceAll(/\{(\w+)\}/g, (_, name) => all[name] ?? ''),
  );
  return { fault: { stage: at, message, advice }, status, tls };
}
