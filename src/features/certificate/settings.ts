/** HTTPS settings: certificate files, a certificate authority, or a reverse proxy. */
import { isIP } from 'node:net';
import { z } from 'zod';
import { defineSections, defineVariables, type Reader } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';
import { variables as coreVariables } from '../../core/config/variables.ts';
import { exactUrl } from '../../core/http/network-address.ts';
import { holdsCertificates } from '../../core/http/tls-settings.ts';
import { AppError } from '../../core/terms/app-error.ts';

declare module '../../core/config/config.ts' {
  interface Config {
    tls: TlsConfig;
    servedTls: ServedTls;
    acme: AcmeConfig;
  }
  interface StartConfig {
    tls: TlsConfig;
  }
}

export const variables = defineVariables({
  EARSHOT_ACME_DIRECTORY: {
    schema: exactUrl,
    default: 'https://acme-v02.api.letsencrypt.org/directory',
    description:
      "Directory URL of the certificate authority (ACME, RFC 8555). The default is Let's Encrypt.",
    example: 'https://acme-v02.api.letsencrypt.org/directory',
  },
  EARSHOT_ACME_EMAIL: {
    schema: z.email('must be an e-mail address'),
    description:
      'E-mail address for the certificate authority. Some authorities require an address, others ignore the address.',
    example: 'me@example.org',
  },
  EARSHOT_ACME_AGREE: {
    schema: z.literal('yes', 'must be yes, to agree to the terms of the authority'),
    description:
      '`yes`: you agree to the terms of service of the authority. For the default authority: https://letsencrypt.org/repository.',
    example: 'yes',
  },
  EARSHOT_ACME_CHALLENGE: {
    schema: z.enum(['http-01', 'tls-alpn-01']),
    default: 'http-01',
    description:
      'Challenge with which the authority verifies the host name. `http-01`: the authority connects to port 80 of the host name. `tls-alpn-01`: the authority connects to port 443, which must lead to EARSHOT_LISTEN.',
    example: 'http-01',
  },
  EARSHOT_ACME_HTTP_LISTEN: {
    schema: values.listenAddress,
    default: '0.0.0.0:80',
    description:
      'Address and port of the listener for http-01 challenges. The authority connects to port 80 of the host name, which must lead to this listener.',
    example: '0.0.0.0:80',
  },
  EARSHOT_ACME_CA: {
    schema: z.string(),
    isTrusted: true,
    description:
      'PEM file with the root certificates of a private certificate authority. For the connection to this authority, earshot trusts these certificates in addition to the public ones.',
    example: './private-authority.pem',
  },
  EARSHOT_ACME_EAB_KEY_ID: {
    schema: z.string(),
    description: 'Key id of the external account binding, if the authority requires one.',
    example: 'kid-1',
  },
  EARSHOT_ACME_EAB_HMAC_KEY: {
    schema: z.string().regex(/^[\w+/-]+=*$/, 'must be base64url text, as issued by the authority'),
    secret: true,
    description: 'HMAC key of the external account binding (base64url).',
    example: 'zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W',
  },
});

const known = { ...coreVariables, ...variables };

export const sections = defineSections(known, {
  tls: (reader) => readTls(reader),
  servedTls: readServedTls,
  acme: readOwnAcme,
});

export const groups = { start: ['tls'] };

type TlsReader = Reader<typeof known>;

/** `off`: plain HTTP behind a proxy that terminates HTTPS. */
export type TlsConfig = ReturnType<typeof readTls>;

export type ServedTls = Exclude<TlsConfig, { kind: 'off' }>;

/** Settings for orders at a certificate authority (RFC 8555). */
export type AcmeConfig = ReturnType<typeof readAcme>;

function readTls(reader: TlsReader) {
  const { value, failed, report, stop } = reader;
  const tls = value('EARSHOT_TLS');
  const [cert, key] = [value('EARSHOT_TLS_CERT'), value('EARSHOT_TLS_KEY')];
  if (failed('EARSHOT_TLS')) return stop();
  if (tls === 'acme') return readAcme(reader);
  if (tls === 'off') {
    if (cert === undefined && key === undefined) return { kind: 'off' as const };
    report(
      'EARSHOT_TLS',
      'EARSHOT_TLS=off cannot be combined with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY.',
    );
    return stop();
  }
  if (cert !== undefined && key !== undefined) return { kind: 'files' as const, cert, key };
  const both = ['EARSHOT_TLS_CERT', 'EARSHOT_TLS_KEY'] as const;
  const missing = both.filter((name) => value(name) === undefined);
  report(
    missing[0] ?? null,
    `HTTPS needs ${missing.join(' and ')}.`,
    'For an automatic certificate, set EARSHOT_TLS=acme. Behind a reverse proxy, set EARSHOT_TLS=off.',
  );
  return stop();
}

/**
 * Reads the settings for commands that order certificates. Throws `configuration` when earshot does not manage the
 * certificate.
 */
function readOwnAcme(reader: TlsReader) {
  const tls = reader.value('EARSHOT_TLS');
  if (tls === 'acme' || reader.failed('EARSHOT_TLS')) return readAcme(reader);
  throw new AppError(
    'configuration',
    `EARSHOT_TLS is ${tls}: earshot does not manage the certificate. Renew the certificate with the tool that issued it. For automatic renewal, set EARSHOT_TLS=acme.`,
  );
}

/** Reads the settings for commands that show the certificate. Throws `configuration` behind a proxy, which has it. */
function readServedTls(reader: TlsReader) {
  const tls = readTls(reader);
  if (tls.kind !== 'off') return tls;
  throw new AppError(
    'configuration',
    'EARSHOT_TLS is off: the reverse proxy has the certificate. To check this certificate: `earshot doctor`.',
  );
}

function readAcme(reader: TlsReader) {
  const { value, failed, report } = reader;
  const host = hostToCertify(reader);
  if (value('EARSHOT_TLS_CERT') !== undefined || value('EARSHOT_TLS_KEY') !== undefined) {
    report(
      'EARSHOT_TLS',
      'EARSHOT_TLS=acme cannot be combined with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY: remove these two, or set EARSHOT_TLS=files.',
    );
  }
  if (value('EARSHOT_ACME_AGREE') !== 'yes' && !failed('EARSHOT_ACME_AGREE')) {
    report(
      'EARSHOT_ACME_AGREE',
      'EARSHOT_TLS=acme needs your agreement to the terms of service of the authority: https://letsencrypt.org/repository for the default. To agree, set EARSHOT_ACME_AGREE=yes.',
    );
  }
  const keyId = value('EARSHOT_ACME_EAB_KEY_ID');
  const hmacKey = value('EARSHOT_ACME_EAB_HMAC_KEY');
  const isHalf = (keyId === undefined) !== (hmacKey === undefined);
  if (isHalf && !failed('EARSHOT_ACME_EAB_KEY_ID', 'EARSHOT_ACME_EAB_HMAC_KEY')) {
    report(
      keyId === undefined ? 'EARSHOT_ACME_EAB_KEY_ID' : 'EARSHOT_ACME_EAB_HMAC_KEY',
      'EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY belong together: set both.',
    );
  }
  return {
    kind: 'acme' as const,
    directoryUrl: value('EARSHOT_ACME_DIRECTORY'),
    /** Host name of the certificate. */
    host,
    email: value('EARSHOT_ACME_EMAIL'),
    challenge: value('EARSHOT_ACME_CHALLENGE'),
    /** Listener for http-01 challenges. */
    httpListen: value('EARSHOT_ACME_HTTP_LISTEN'),
    /** PEM text of additional root certificates for the HTTPS connection to the authority. */
    extraCaPem: readCa(reader),
    /** External account binding. */
    eab: keyId === undefined || hmacKey === undefined ? undefined : { keyId, hmacKey },
  };
}

/** RFC 1123, 2.1: no underscores, no wildcards. */
const hostName =
  /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Returns the host name for the certificate; any text when a problem is reported. */
function hostToCertify({ value, failed, report }: TlsReader): string {
  const publicUrl = value('EARSHOT_PUBLIC_URL');
  const host = publicUrl === undefined ? '' : new URL(publicUrl).hostname.replace(/\.$/, '');
  if (!failed('EARSHOT_PUBLIC_URL') && (isIP(host) !== 0 || !hostName.test(host))) {
    report(
      'EARSHOT_PUBLIC_URL',
      'EARSHOT_TLS=acme needs EARSHOT_PUBLIC_URL with a host name of letters, digits, dashes and dots, and no IP address.',
    );
  }
  return host;
}

function readCa({ value, report, readFile }: TlsReader): string | undefined {
  const file = value('EARSHOT_ACME_CA');
  if (file === undefined) return undefined;
  try {
    const pem = readFile(file);
    if (holdsCertificates(pem)) return pem;
    report('EARSHOT_ACME_CA', `EARSHOT_ACME_CA: ${file} must contain only PEM certificates.`);
  } catch {
    report('EARSHOT_ACME_CA', `EARSHOT_ACME_CA: ${file} cannot be read.`);
  }
  return undefined;
}
