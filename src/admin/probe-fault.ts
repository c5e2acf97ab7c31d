/** Messages and advice for failed probes: name, connection, certificate, answer. */
import { errorCodeOf } from '../domain/app-error.ts';

/** Stages of a probe, in order. */
export const probeStages = ['name', 'connection', 'certificate', 'answer'] as const;

export type ProbeStage = (typeof probeStages)[number];

export interface ProbeFault {
  stage: ProbeStage;
  /** The fault and its reason, one sentence. */
  message: string;
  advice: string;
}

/** Details of the TLS handshake. */
export interface SeenTls {
  /** For example `TLSv1.3`. */
  protocol: string;
  /** The issuer's name in one line. */
  issuer: string;
  notBefore: Date;
  notAfter: Date;
}

/** State of a probe when it failed. */
export interface ProbeProgress {
  stage: ProbeStage;
  /** Without brackets. */
  host: string;
  port: string;
  timeoutMs: number;
  /** The certificate, even if it was refused; null if it is not known. */
  tls: SeenTls | null;
}

/** Error code of the probe's own timeout. */
export const timeoutCode = 'PROBE_TIMEOUT';

type FaultText = Pick<ProbeFault, 'message' | 'advice'>;

type Explain = (progress: ProbeProgress) => FaultText;

const unresolved: Explain = ({ host }) => ({
  message: `The name ${host} does not resolve to an address.`,
  advice:
    'Check the spelling in EARSHOT_PUBLIC_URL, or create an A record for the name at your DNS provider.',
});

const unroutable: Explain = ({ host }) => ({
  message: `There is no route from this machine to the address of ${host}.`,
  advice: 'Check that the A and AAAA records of the name have addresses of this machine.',
});

const connectionFaults: Record<string, Explain> = {
  ECONNREFUSED: ({ host, port }) => ({
    message: `${host} refuses connections on port ${port}: no program listens on this port.`,
    advice:
      'Start the receiver (`earshot start`), and check the port in EARSHOT_LISTEN or in the proxy.',
  }),
  EHOSTUNREACH: unroutable,
  ENETUNREACH: unroutable,
  EADDRNOTAVAIL: unroutable,
};

const publicAuthority =
  "Use a certificate of a public authority, such as Let's Encrypt. To test with a private authority, set EARSHOT_PROBE_CA.";

const untrusted: Explain = ({ tls }) => ({
  message: `The authority of the certificate is not publicly trusted${by(tls)}.`,
  advice: publicAuthority,
});

const incomplete: Explain = ({ tls }) => ({
  message: `The intermediate certificates are missing${by(tls)}.`,
  advice:
    'Serve the full chain (fullchain.pem, not cert.pem). If the chain is already complete, the authority is not publicly trusted.',
});

/** By code of OpenSSL and Node (docs of node:tls, X509 certificate error codes). */
const certificateFaults: Record<string, Explain> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: () => ({
    message: 'The certificate is self-signed, and the catalogue refuses such certificates.',
    advice: publicAuthority,
  }),
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: incomplete,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: incomplete,
  CERT_HAS_EXPIRED: ({ tls }) => ({
    message: `A certificate of the chain has expired${tls === null ? '' : ` (certificate valid until ${dayOf(tls)})`}.`,
    advice:
      'Renew the certificate. If it was already renewed, check EARSHOT_TLS_CERT and the log of the receiver.',
  }),
  CERT_NOT_YET_VALID: () => ({
    message: 'According to the clock of this machine, the certificate is not valid yet.',
    advice: 'Check the clock of this machine (`timedatectl`) and the dates of the certificate.',
  }),
  ERR_TLS_CERT_ALTNAME_INVALID: ({ host }) => ({
    message: `The certificate is not valid for ${host}.`,
    advice: `Get a certificate for ${host}, or use the name of the certificate in EARSHOT_PUBLIC_URL.`,
  }),
};

/** Codes of all other reasons to refuse a certificate. */
const certificateCode =
  /^(CERT_|CRL_|UNABLE_TO_|ERR_TLS_CERT|ERROR_IN_CERT|INVALID_|PATH_LENGTH|HOSTNAME_MISMATCH|EE_KEY|CA_|UNSPECIFIED)/;

/** TLS failures have OpenSSL's reason in the message, and often only the code EPROTO. */
const tlsFaults: readonly [RegExp, Explain][] = [
  [
    /wrong.version.number|packet.length.too.long|http.request/i,
    ({ port }) => ({
      message: `Port ${port} does not use HTTPS: the TLS handshake got no response. The port may use plain HTTP.`,
      advice:
        'If a proxy serves this port, configure HTTPS in the proxy. Otherwise, set EARSHOT_TLS=files with a certificate.',
    }),
  ],
  [
    /protocol.version|unsupported.protocol/i,
    () => ({
      message: 'The TLS version of the endpoint is too old: the minimum is 1.2.',
      advice: 'Enable TLS 1.2 and 1.3 in the proxy that serves the certificate.',
    }),
  ],
  [
    /EPROTO|ERR_SSL_|ERR_TLS_/,
    ({ port }) => ({
      message: `The TLS handshake on port ${port} failed.`,
      advice:
        'With EARSHOT_TLS=acme, check that there is a certificate: `earshot certificate show`. Otherwise check the log of the server, and test with openssl s_client.',
    }),
  ],
];

/** Explains a failed request. The text contains neither the error's message nor credentials. */
export function faultOf(error: unknown, progress: ProbeProgress): ProbeFault {
  const code = codeOf(error);
  const { stage } = progress;
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) {
    return { stage: 'name', ...unresolved(progress) };
  }
  const connection = connectionFaults[code];
  if (connection !== undefined) return { stage: 'connection', ...connection(progress) };
  if (code === timeoutCode || code === 'ETIMEDOUT') {
    return { stage, ...timeoutText(progress, code === timeoutCode) };
  }
  const certificate = certificateFaults[code];
  if (certificate !== undefined) return { stage: 'certificate', ...certificate(progress) };
  if (certificateCode.test(code)) return { stage: 'certificate', ...refusedText(code) };
  // With TLS 1.3, the client may finish the handshake before the server refuses it.
  const text = `${code} ${error instanceof Error ? error.message : ''}`;
  const tls = tlsFaults.find(([pattern]) => pattern.test(text));
  if (tls !== undefined) return { stage: 'certificate', ...tls[1](progress) };
  return { stage, ...brokenText(code, progress) };
}

function timeoutText({ stage, host, port, timeoutMs }: ProbeProgress, isOurs: boolean): FaultText {
  const within = isOurs ? `within ${timeoutMs / 1000} s` : 'in time';
  if (stage === 'name') {
    return {
      message: `The name ${host} was not resolved ${within}: the DNS servers do not answer.`,
      advice: 'Check the DNS servers of this machine (/etc/resolv.conf).',
    };
  }
  if (stage === 'connection') {
    return {
      message: `${host} did not answer on port ${port} ${within}. A firewall may block the port.`,
      advice: `Open TCP port ${port} in the firewalls of the machine and its provider.`,
    };
  }
  return {
    message: `Port ${port} of ${host} accepts connections, but sent no ${stage === 'certificate' ? 'certificate' : 'complete answer'} ${within}.`,
    advice: 'Check that the receiver listens on this port, and check the log of the receiver.',
  };
}

function brokenText(code: string, { stage, port }: ProbeProgress): FaultText {
  if (code.startsWith('HPE_')) {
    return {
      message: `The server on port ${port} does not use HTTP.`,
      advice: 'Check that the receiver, and no other program, listens on this port.',
    };
  }
  const when = {
    name: 'while the name was resolved',
    connection: 'immediately',
    certificate: 'during the TLS handshake',
    answer: 'before the answer was complete',
  }[stage];
  return {
    message: `The connection to port ${port} was closed ${when} (${code}).`,
    advice:
      'Check the logs of the receiver, the proxy and the firewall: one of them closed the connection.',
  };
}

function refusedText(code: string): FaultText {
  return { message: `The certificate is not trusted (${code}).`, advice: publicAuthority };
}

/** Returns the issuer in parentheses, for the end of a sentence. */
export function by(tls: SeenTls | null): string {
  return tls === null ? '' : ` (issuer: ${tls.issuer})`;
}

function dayOf({ notAfter }: SeenTls): string {
  return notAfter.toISOString().slice(0, 10);
}

/** For several addresses there are several errors: the first of these is reported. */
const preferredCodes = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'];

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const codes = error.errors.map(codeOf);
    return preferredCodes.find((code) => codes.includes(code)) ?? codes[0] ?? 'unknown';
  }
  return errorCodeOf(error);
}
