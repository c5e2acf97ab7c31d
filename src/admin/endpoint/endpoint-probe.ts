/** Looks at an endpoint from outside, as the catalogue's users are told to before they subscribe. */
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, type PeerCertificate, TLSSocket } from 'node:tls';
import { AppError } from '../../domain/app-error.ts';
import { probeProofHeader } from '../../http/probe-proof.ts';
import { contextTrusting } from '../../http/trusted-authorities.ts';
import type { EndpointCredentials } from '../service/subscription-client.ts';
import { faultOfStatus } from './probe-answer.ts';
import {
  faultOf,
  type ProbeFault,
  type ProbeProgress,
  type SeenTls,
  timeoutCode,
} from './probe-fault.ts';
import { lookAtCertificate, seenTls } from './served-certificate.ts';

export interface ProbeReport {
  /** Null when all is well: 200 over a trusted certificate. */
  fault: ProbeFault | null;
  /** HTTP status, when an answer came. */
  status: number | null;
  /** What the TLS handshake showed, when there was one. */
  tls: SeenTls | null;
}

/**
 * Sends one GET to an endpoint. `credentials` null sends none; `proof` then keeps the receiver from taking it for a
 * failed login. Never follows redirects, never rejects: every failure is a `fault`. Messages hold no credentials.
 */
export type ProbeEndpoint = (
  endpoint: string,
  credentials: EndpointCredentials | null,
  proof?: string | null,
) => Promise<ProbeReport>;

const timeoutDefaultMs = 15_000;
const answerBytesMax = 64 * 1024;

/** Node's 250 ms would give up an address on a slow line, and report the next one's failure instead. */
const addressTimeoutMs = 3_000;

/**
 * Creates a probe that trusts Node's and the system's authorities, and those in `extraCaPems` (PEM,
 * one or more certificates each). Throws `configuration` for a text without certificate.
 */
export function createEndpointProbe(
  options: { extraCaPems?: readonly string[]; timeoutMs?: number } = {},
): ProbeEndpoint {
  const { extraCaPems = [], timeoutMs = timeoutDefaultMs } = options;
  const agent = createAgent(extraCaPems);
  return async (endpoint, credentials, proof = null) => {
    const url = URL.parse(endpoint);
    if (url === null || url.protocol !== 'https:') return notHttps;
    const port = url.port || '443';
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const progress: ProbeProgress = {
      stage: isIP(host) === 0 ? 'name' : 'connection',
      host,
      port,
      timeoutMs,
      tls: null,
    };
    try {
      const headers = {
        ...(credentials === null ? {} : { Authorization: toBasic(credentials) }),
        ...(proof === null ? {} : { [probeProofHeader]: proof }),
      };
      const status = await statusOf({ url, agent, headers, progress });
      return { fault: faultOfStatus(status, credentials !== null), status, tls: progress.tls };
    } catch (error) {
      if (faultOf(error, progress).stage === 'certificate' && progress.tls === null) {
        progress.tls = await lookAtCertificate({ host, port: Number(port), timeoutMs });
      }
      return { fault: faultOf(error, progress), status: null, tls: progress.tls };
    }
  };
}

const notHttps: ProbeReport = {
  fault: {
    stage: 'name',
    message: 'The endpoint is not an https URL.',
    advice: 'Set EARSHOT_PUBLIC_URL to https://, the name and, if it is not 443, the port.',
  },
  status: null,
  tls: null,
};

function createAgent(extraCaPems: readonly string[]): Agent {
  for (const pem of extraCaPems) assertCertificate(pem);
  return new Agent({
    keepAlive: false,
    secureContext: contextTrusting(extraCaPems),
    // Stated, because an environment variable could otherwise switch the checks off.
    rejectUnauthorized: true,
    checkServerIdentity: (host, certificate) =>
      checkServerIdentity(host, certificate) ?? refuseSelfSigned(certificate),
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
  });
}

/** Resolves with the status when the answer is complete, or as long as anyone would want. */
function statusOf(options: {
  url: URL;
  agent: Agent;
  headers: Record<string, string>;
  /** Kept up to date while the probe goes on. */
  progress: ProbeProgress;
}): Promise<number> {
  const { url, agent, headers, progress } = options;
  return new Promise((resolve, reject) => {
    const target = { host: progress.host, port: progress.port, path: url.pathname + url.search };
    const sent = request({ ...target, method: 'GET', agent, headers });
    const timer = setTimeout(() => {
      sent.destroy(Object.assign(new Error('the time is up'), { code: timeoutCode }));
    }, progress.timeoutMs);
    sent.on('socket', (socket) => {
      socket.once('lookup', () => {
        progress.stage = 'connection';
      });
      socket.once('connect', () => {
        progress.stage = 'certificate';
      });
      socket.once('secureConnect', () => {
        progress.stage = 'answer';
        if (socket instanceof TLSSocket) progress.tls = seenTls(socket);
      });
    });
    sent.on('response', (response) => {
      let readBytes = 0;
      const done = () => resolve(response.statusCode ?? 0);
      response.on('data', (chunk: Buffer) => {
        readBytes += chunk.length;
        if (readBytes <= answerBytesMax) return;
        done();
        response.destroy();
      });
      response.on('end', done);
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.on('close', () => clearTimeout(timer));
    sent.end();
  });
}

/** Being told to trust such a certificate does not help: the catalogue would refuse it all the same. */
function refuseSelfSigned({ raw }: PeerCertificate): Error | undefined {
  const leaf = new X509Certificate(raw);
  if (leaf.subject !== leaf.issuer || !leaf.verify(leaf.publicKey)) return undefined;
  const error = new Error('the certificate is self-signed');
  return Object.assign(error, { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
}

function toBasic({ username, password }: EndpointCredentials): string {
  return `Basic ${Buffer.from(`${username}:${password}`, 'utf8').toString('base64')}`;
}

function assertCertificate(pem: string): void {
  try {
    new X509Certificate(pem);
  } catch (cause) {
    throw new AppError('configuration', 'EARSHOT_PROBE_CA does not hold a certificate.', {
      advice:
        'Name a PEM file with the root of the authority, from BEGIN CERTIFICATE to END CERTIFICATE.',
      cause,
    });
  }
}
