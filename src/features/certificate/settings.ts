/** HTTPS settings: certificate files, a certificate authority, or a reverse proxy. */
import { isIP } from 'node:net';
import type { Reader } from '../../core/config/load.ts';
import type { VariableName } from '../../core/config/variables.ts';
import { holdsCertificates } from '../../core/http/tls-settings.ts';
import { AppError } from '../../core/terms/app-error.ts';

/** `off`: plain HTTP behind a proxy that terminates HTTPS. */
export type TlsConfig = ReturnType<typeof readTls>;

/** Settings for orders at a certificate authority (RFC 8555). */
export type AcmeConfig = ReturnType<typeof readAcme>;

/** `needed`: a missing agreement to the terms of the authority is a problem. */
type Agreement = 'needed' | 'asked';

export function readTls(reader: Reader, agreement: Agreement = 'needed') {
  const { value, failed, report, stop } = reader;
  const [tls, cert, key] = [
    value('EARSHOT_TLS'),
    value('EARSHOT_TLS_CERT'),
    value('EARSHOT_TLS_KEY'),
  ];
  // Reports invalid values even if they are not used.
  failed(...acmeNames);
  if (failed('EARSHOT_TLS')) return stop();
  if (tls === 'acme') return readAcme(reader, agreement);
  if (tls === 'off') {
    if (cert === undefined && key === undefined) return { kind: 'off' as const };
    report(
      'EARSHOT_TLS',
      'EARSHOT_TLS=off cannot be combined with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY.',
    );
    return stop();
  }
  if (cert !== undefined && key !== undefined) return { kind: 'files' as const, cert, key };
  const missing: VariableName[] = [
    ...(cert === undefined ? ['EARSHOT_TLS_CERT' as const] : []),
    ...(key === undefined ? ['EARSHOT_TLS_KEY' as const] : []),
  ];
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
export function readOwnAcme(reader: Reader) {
  const tls = reader.value('EARSHOT_TLS');
  reader.failed(...acmeNames);
  if (tls === 'acme' || reader.failed('EARSHOT_TLS')) return readAcme(reader, 'needed');
  throw new AppError(
    'configuration',
    `EARSHOT_TLS is ${tls}: earshot does not manage the certificate. Renew the certificate with the tool that issued it. For automatic renewal, set EARSHOT_TLS=acme.`,
  );
}

/** Reads the settings for commands that show the certificate. Throws `configuration` behind a proxy, which has it. */
export function readServedTls(reader: Reader) {
  const tls = readTls(reader, 'asked');
  if (tls.kind !== 'off') return tls;
  if (reader.failed(...acmeNames)) return reader.stop();
  throw new AppError(
    'configuration',
    'EARSHOT_TLS is off: the reverse proxy has the certificate. To check this certificate: `earshot doctor`.',
  );
}

const acmeNames = [
  'EARSHOT_ACME_DIRECTORY',
  'EARSHOT_ACME_EMAIL',
  'EARSHOT_ACME_AGREE',
  'EARSHOT_ACME_CHALLENGE',
  'EARSHOT_ACME_HTTP_LISTEN',
  'EARSHOT_ACME_CA',
  'EARSHOT_ACME_EAB_KEY_ID',
  'EARSHOT_ACME_EAB_HMAC_KEY',
] as const;

function readAcme(reader: Reader, agreement: Agreement) {
  const { value, failed, report } = reader;
  const host = hostToCertify(reader);
  if (value('EARSHOT_TLS_CERT') !== undefined || value('EARSHOT_TLS_KEY') !== undefined) {
    report(
      'EARSHOT_TLS',
      'EARSHOT_TLS=acme cannot be combined with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY: remove these two, or set EARSHOT_TLS=files.',
    );
  }
  const isAgreed = value('EARSHOT_ACME_AGREE') === 'yes' || agreement === 'asked';
  if (!isAgreed && !failed('EARSHOT_ACME_AGREE')) {
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
function hostToCertify({ value, failed, report }: Reader): string {
  const publicUrl = value('EARSHOT_PUBLIC_URL');
  const refuse = (message: string) => report('EARSHOT_PUBLIC_URL', message);
  const host = publicUrl === undefined ? '' : new URL(publicUrl).hostname.replace(/\.$/, '');
  if (publicUrl === undefined) {
    if (!failed('EARSHOT_PUBLIC_URL'))
      refuse(
        'EARSHOT_TLS=acme needs EARSHOT_PUBLIC_URL: the certificate is issued for its host name.',
      );
  } else if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0) {
    refuse(
      `EARSHOT_PUBLIC_URL contains the IP address ${host}; EARSHOT_TLS=acme needs a host name that resolves to this address.`,
    );
  } else if (!hostName.test(host)) {
    refuse(
      `EARSHOT_PUBLIC_URL contains ${host}, which is not a valid host name for a certificate: use letters, digits, dashes and dots.`,
    );
  }
  return host;
}

function readCa({ value, report, readFile }: Reader): string | undefined {
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
