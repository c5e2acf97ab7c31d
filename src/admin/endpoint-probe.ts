/** Probes an endpoint over HTTPS, as the specification recommends before a subscription. */
import { X509Certificate } from 'node:crypto';
import { Agent, request } from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, connect, type PeerCertificate, TLSSocket } from 'node:tls';
import { AppError } from '../domain/app-error.ts';
import { probeProofHeader } from '../http/probe-proof.ts';
import { contextTrusting } from '../http/tls-settings.ts';
import {
  faultOf,
  type ProbeFault,
  type ProbeProgress,
  type SeenTls,
  timeoutCode,
} from './probe-fault.ts';
import type { EndpointCredentials } from './subscription-client.ts';

export interface ProbeReport {
  /** Null after status 200 with a trusted certificate. */
  fault: ProbeFault | null;
  /** HTTP status; null without an answer. */
  status: number | null;
  /** Details of the TLS handshake; null without one. */
  tls: SeenTls | null;
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

const timeoutDefaultMs = 15_000;

const answerBytesMax = 64 * 1024;

/** Timeout of each address: Node's 250 ms is too short for slow networks, and hides the first failure. */
const addressTimeoutMs = 3_000;

/**
 * Creates a probe that trusts Node's and the system's authorities, and those in `extraCaPems` (PEM,
 * one or more certificates each). Throws `configuration` for a text without a certificate.
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
        progress.tls = await fetchCertificate({ host, port: Number(port), timeoutMs });
      }
      return { fault: faultOf(error, progress), status: null, tls: progress.tls };
    }
  };
}

const notHttps: ProbeReport = {
  fault: {
    stage: 'name',
    message: 'The endpoint is not an https URL.',
    advice: 'Set EARSHOT_PUBLIC_URL to https://NAME, with :PORT if it is not 443.',
  },
  status: null,
  tls: null,
};

function createAgent(extraCaPems: readonly string[]): Agent {
  for (const pem of extraCaPems) assertCertificate(pem);
  return new Agent({
    keepAlive: false,
    secureContext: contextTrusting(extraCaPems),
    // Explicit, because an environment variable could otherwise turn off the checks.
    rejectUnauthorized: true,
    checkServerIdentity: (host, certificate) =>
      checkServerIdentity(host, certificate) ?? refuseSelfSigned(certificate),
    autoSelectFamilyAttemptTimeout: addressTimeoutMs,
  });
}

/** Resolves with the status when the answer is complete, or its maximum size is reached. */
function statusOf(options: {
  url: URL;
  agent: Agent;
  headers: Record<string, string>;
  /** Updated during the probe. */
  progress: ProbeProgress;
}): Promise<number> {
  const { url, agent, headers, progress } = options;
  return new Promise((resolve, reject) => {
    const target = { host: progress.host, port: progress.port, path: url.pathname + url.search };
    const sent = request({ ...target, method: 'GET', agent, headers });
    const timer = setTimeout(() => {
      sent.destroy(Object.assign(new Error('timeout'), { code: timeoutCode }));
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

/** Refuses a self-signed certificate even if it is configured as trusted: the catalogue refuses it. */
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
    throw new AppError(
      'configuration',
      'The file of EARSHOT_PROBE_CA does not contain a certificate.',
      {
        advice: 'Set EARSHOT_PROBE_CA to a PEM file with the root certificate of the authority.',
        cause,
      },
    );
  }
}

type FaultText = Pick<ProbeFault, 'message' | 'advice'>;

const otherProgram: FaultText = {
  message: 'another program answers, or earshot does not serve this path',
  advice:
    'Check that the receiver uses this port, and that any proxy keeps the path /notifications unchanged.',
};

const behindProxy: FaultText = {
  message: 'a proxy answers, but cannot reach the receiver',
  advice: 'Start the receiver, and check the address in the configuration of the proxy.',
};

const redirect: FaultText = {
  message: 'this is a redirect, which the catalogue possibly does not follow',
  advice: 'Set EARSHOT_PUBLIC_URL to the target of the redirect.',
};

const notOurs: FaultText = { ...otherProgram, message: 'the response is not from earshot' };

const noCredentials: FaultText = {
  message: 'the endpoint requires credentials, but none were sent',
  advice: 'Repeat the check with the endpoint credentials.',
};

const byStatus: Record<number, FaultText> = {
  401: {
    message: 'the running receiver has other credentials',
    advice:
      'If the credentials changed after the receiver started, restart the receiver. A proxy must pass on the Authorization header.',
  },
  403: {
    message: 'a proxy or firewall denies access (earshot never returns this status)',
    advice: 'Check the rules of the proxy or firewall.',
  },
  404: otherProgram,
  405: otherProgram,
  429: {
    message: 'too many logins with wrong credentials from this machine',
    advice: 'Wait a minute, and find the program that uses wrong credentials.',
  },
  500: {
    message: 'internal error of the receiver',
    advice: 'Check the log of the receiver, and report the error.',
  },
  502: behindProxy,
  503: {
    message: 'the receiver cannot write to its database, or a proxy cannot reach the receiver',
    advice: 'Check the log of the receiver for the reason, such as a full disk.',
  },
  504: behindProxy,
};

/** Returns null for 200, the status that the specification requires (What the service does, 5). */
function faultOfStatus(status: number, withCredentials: boolean): ProbeFault | null {
  if (status === 200) return null;
  const isRedirect = status >= 300 && status <= 399;
  const known = status === 401 && !withCredentials ? noCredentials : byStatus[status];
  const { message, advice } = isRedirect ? redirect : (known ?? notOurs);
  return { stage: 'answer', message: `The endpoint returns ${status}: ${message}.`, advice };
}

/** Returns null on a connection without a certificate. */
function seenTls(socket: TLSSocket): SeenTls | null {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    issuer: certificate.issuer.replaceAll('\n', ', '),
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
  };
}

/**
 * Connects again to read a refused certificate, which Node does not provide. The certificate is not
 * verified and no data is sent: the result is only for messages. Resolves with null on failure.
 */
function fetchCertificate(options: {
  host: string;
  port: number;
  timeoutMs: number;
}): Promise<SeenTls | null> {
  const { host, port, timeoutMs } = options;
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    });
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    let seen: SeenTls | null = null;
    socket.once('secureConnect', () => {
      seen = seenTls(socket);
      socket.destroy();
    });
    // The verified connection has already reported the reason.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(seen);
    });
  });
}
