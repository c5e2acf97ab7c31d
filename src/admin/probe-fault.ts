/** What kept a probe from its answer: each failure of name, connection and TLS in words for its user. */
import { errorCodeOf } from '../domain/app-error.ts';

/** How far a probe came, in order. */
export const probeStages = ['name', 'connection', 'certificate', 'answer'] as const;

export type ProbeStage = (typeof probeStages)[number];

export interface ProbeFault {
  stage: ProbeStage;
  /** What happened and why, one sentence. */
  message: string;
  /** What to do, one sentence. */
  advice: string;
}

/** What the TLS handshake showed. */
export interface SeenTls {
  /** Such as `TLSv1.3`. */
  protocol: string;
  /** The issuer's name in one line. */
  issuer: string;
  notBefore: Date;
  notAfter: Date;
}

/** Where a probe was when it failed. */
export interface ProbeProgress {
  stage: ProbeStage;
  /** Without brackets. */
  host: string;
  port: string;
  timeoutMs: number;
  /** The certificate, also one that was refused; null where it was not seen. */
  tls: SeenTls | null;
}

/** The code of an error of the probe's own: the time was up. */
export const timeoutCode = 'PROBE_TIMEOUT';

type Words = Pick<ProbeFault, 'message' | 'advice'>;

type Row = (progress: ProbeProgress) => Words;

const unresolved: Row = ({ host }) => ({
  message: `The name ${host} does not resolve to an address.`,
  advice:
    'Look for a typing error in EARSHOT_PUBLIC_URL, and make an A record for the name at your DNS provider.',
});

const unroutable: Row = ({ host }) => ({
  message: `No way leads from this machine to the address of ${host}.`,
  advice: 'Check that the DNS records, AAAA too, hold addresses that this machine really has.',
});

const connectionFaults: Record<string, Row> = {
  ECONNREFUSED: ({ host, port }) => ({
    message: `${host} refuses connections on port ${port}: no program listens there.`,
    advice:
      'Start the receiver (`earshot start`), and check that EARSHOT_LISTEN, or the proxy in front, has this port.',
  }),
  EHOSTUNREACH: unroutable,
  ENETUNREACH: unroutable,
  EADDRNOTAVAIL: unroutable,
};

const publicAuthority =
  "Use a certificate of a public authority, such as Let's Encrypt; for a test with an authority of your own set EARSHOT_PROBE_CA.";

const untrusted: Row = ({ tls }) => ({
  message: `The certificate is of an authority that is not publicly trusted${by(tls)}.`,
  advice: publicAuthority,
});

const incomplete: Row = ({ tls }) => ({
  message: `The certificate came without the certificates between it and a known authority${by(tls)}.`,
  advice:
    'Serve the full chain (fullchain.pem, not cert.pem); if that is what is served, the authority is not a public one.',
});

/** By OpenSSL's and Node's own codes (docs of node:tls, X509 certificate error codes). */
const certificateFaults: Record<string, Row> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: () => ({
    message: 'The certificate is self-signed, and the catalogue refuses such certificates.',
    advice: publicAuthority,
  }),
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_GET_ISSUER_CERT: incomplete,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: incomplete,
  CERT_HAS_EXPIRED: ({ tls }) => ({
    message: `The certificate, or one of its chain, has expired${tls === null ? '' : ` (its own end: ${dayOf(tls)})`}.`,
    advice:
      'Renew it; if the file is new already, check that EARSHOT_TLS_CERT names it, and look into the log.',
  }),
  CERT_NOT_YET_VALID: () => ({
    message: 'The certificate is not valid yet, as seen from the clock of this machine.',
    advice: 'Check the clock of this machine (`timedatectl`), then the dates of the certificate.',
  }),
  ERR_TLS_CERT_ALTNAME_INVALID: ({ host }) => ({
    message: `The certificate is for another name than ${host}.`,
    advice: `Order one that holds ${host}, or put the name of the certificate into EARSHOT_PUBLIC_URL.`,
  }),
};

/** Every further reason that a certificate may be refused for has a code of this form. */
const certificateCode =
  /^(CERT_|CRL_|UNABLE_TO_|ERR_TLS_CERT|ERROR_IN_CERT|INVALID_|PATH_LENGTH|HOSTNAME_MISMATCH|EE_KEY|CA_|UNSPECIFIED)/;

/** TLS failures carry OpenSSL's words in the message, and often no more than EPROTO as a code. */
const tlsFaults: readonly [RegExp, Row][] = [
  [
    /wrong.version.number|packet.length.too.long|http.request/i,
    ({ port }) => ({
      message: `Port ${port} does not speak HTTPS: the answer to the TLS handshake is something else, such as plain HTTP.`,
      advice:
        'Set EARSHOT_TLS=files with a certificate, or let the proxy in front speak HTTPS on this port.',
    }),
  ],
  [
    /protocol.version|unsupported.protocol/i,
    () => ({
      message: 'The endpoint speaks no TLS version of today: 1.2 is the least.',
      advice: 'Allow TLS 1.2 and 1.3 in the proxy that serves the certificate.',
    }),
  ],
  [
    /EPROTO|ERR_SSL_|ERR_TLS_/,
    ({ port }) => ({
      message: `The TLS handshake on port ${port} failed.`,
      advice:
        'With EARSHOT_TLS=acme there may be no certificate yet (`earshot certificate show`); else look into the log of what serves it, and test with openssl s_client.',
    }),
  ],
];

/** Puts a failure of the request into words. They never hold the error's own text, nor credentials. */
export function faultOf(error: unknown, progress: ProbeProgress): ProbeFault {
  const code = codeOf(error);
  const { stage } = progress;
  if (code === 'ENOTFOUND' || code.startsWith('EAI_')) {
    return { stage: 'name', ...unresolved(progress) };
  }
  const connection = connectionFaults[code];
  if (connection !== undefined) return { stage: 'connection', ...connection(progress) };
  if (code === timeoutCode || code === 'ETIMEDOUT') {
    return { stage, ...lateText(progress, code === timeoutCode) };
  }
  const certificate = certificateFaults[code];
  if (certificate !== undefined) return { stage: 'certificate', ...certificate(progress) };
  if (certificateCode.test(code)) return { stage: 'certificate', ...refusedText(code) };
  // The handshake of TLS 1.3 ends, for the client, before the server has seen what it asks for.
  const text = `${code} ${error instanceof Error ? error.message : ''}`;
  const tls = tlsFaults.find(([pattern]) => pattern.test(text));
  if (tls !== undefined) return { stage: 'certificate', ...tls[1](progress) };
  return { stage, ...brokenText(code, progress) };
}

function lateText({ stage, host, port, timeoutMs }: ProbeProgress, whole: boolean): Words {
  const within = whole ? `within ${timeoutMs / 1000} s` : 'in time';
  if (stage === 'name') {
    return {
      message: `The name ${host} was not looked up ${within}: the DNS servers do not answer.`,
      advice: 'Check the DNS servers of this machine (/etc/resolv.conf).',
    };
  }
  if (stage === 'connection') {
    return {
      message: `${host} did not answer on port ${port} ${within}, which is what a firewall does.`,
      advice: `Open TCP port ${port} in the firewall of the machine and in that of its provider.`,
    };
  }
  return {
    message: `Port ${port} of ${host} takes connections, but gave no ${stage === 'certificate' ? 'certificate' : 'complete answer'} ${within}.`,
    advice:
      'Check that the receiver is what listens there, and that it is not stuck: look into its log.',
  };
}

function brokenText(code: string, { stage, port }: ProbeProgress): Words {
  if (code.startsWith('HPE_')) {
    return {
      message: `What answers on port ${port} does not speak HTTP.`,
      advice: 'Check that the receiver, and no other program, listens there.',
    };
  }
  const when = {
    name: 'while the name was looked up',
    connection: 'at once',
    certificate: 'during the TLS handshake',
    answer: 'before a complete answer came',
  }[stage];
  return {
    message: `The connection to port ${port} was broken off ${when} (${code}).`,
    advice:
      'Look into the log of the receiver, and of the proxy or firewall in front: one of them closed it.',
  };
}

function refusedText(code: string): Words {
  return { message: `The certificate cannot be trusted (${code}).`, advice: publicAuthority };
}

/** The issuer, to be added to a sentence. */
export function by(tls: SeenTls | null): string {
  return tls === null ? '' : ` (issuer: ${tls.issuer})`;
}

function dayOf({ notAfter }: SeenTls): string {
  return notAfter.toISOString().slice(0, 10);
}

/** A host with several addresses fails with one error for each: the one that says most is taken. */
const telling = ['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT'];

function codeOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) {
    const codes = error.errors.map(codeOf);
    return telling.find((code) => codes.includes(code)) ?? codes[0] ?? 'unknown';
  }
  return errorCodeOf(error);
}
