/** Looks at an endpoint from outside, as the catalogue's users are told to before they subscribe. */
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

type Words = Pick<ProbeFault, 'message' | 'advice'>;

const otherProgram: Words = {
  message: 'another program answers there, or the path is not one that earshot serves',
  advice:
    'Check that the port leads to the receiver, and that a proxy in front passes /notifications on unchanged.',
};

const behindProxy: Words = {
  message: 'a proxy answers, and cannot reach the receiver behind it',
  advice: 'Start the receiver, and check the address in the configuration of the proxy.',
};

const redirect: Words = {
  message: 'it redirects, and the catalogue is not known to follow redirects',
  advice: 'Put the address that it redirects to into EARSHOT_PUBLIC_URL.',
};

const notOurs: Words = { ...otherProgram, message: 'that is not an answer of earshot' };

const noCredentials: Words = {
  message: 'it asks for credentials, and none were sent',
  advice: 'Probe with the endpoint credentials.',
};

const byStatus: Record<number, Words> = {
  401: {
    message: 'the credentials are not those that the running receiver has',
    advice:
      'Restart the receiver if they were changed since its start; behind a proxy, let it pass the Authorization header on.',
  },
  403: {
    message: 'something in front of the receiver denies access, as earshot never answers so',
    advice: 'Look at the rules of the proxy or firewall in front.',
  },
  404: otherProgram,
  405: otherProgram,
  429: {
    message: 'there were too many logins with wrong credentials from this machine',
    advice: 'Wait for a minute, and find out what logs in with wrong credentials.',
  },
  500: {
    message: 'the receiver failed in a way it should not',
    advice: 'Look into its log, and report what stands there.',
  },
  502: behindProxy,
  503: {
    message: 'the receiver cannot write to its database, or a proxy cannot reach it',
    advice: 'Look into the log of the receiver: it names the reason, such as a full disk.',
  },
  504: behindProxy,
};

/** Null for 200, the one status that the specification asks for (What the service does, 5). */
function faultOfStatus(status: number, withCredentials: boolean): ProbeFault | null {
  if (status === 200) return null;
  const isRedirect = status >= 300 && status <= 399;
  const known = status === 401 && !withCredentials ? noCredentials : byStatus[status];
  const { message, advice } = isRedirect ? redirect : (known ?? notOurs);
  return { stage: 'answer', message: `The endpoint answers ${status}: ${message}.`, advice };
}

/** Null on a connection without certificate. */
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
 * Shakes hands once more to see a certificate that was refused: Node does not hand that one out. Nothing
 * is verified here, so nothing is sent and nothing decided: it is for words alone. Null when it fails.
 */
function lookAtCertificate(options: {
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
    // Why it fails has been told by the connection that verified.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(seen);
    });
  });
}
