/** The section on HTTPS: certificate files, a certificate authority, or a proxy in front. */
import { isIP } from 'node:net';
import { AppError } from '../domain/app-error.ts';
import { holdsCertificates } from '../http/tls-settings.ts';
import type { Reader } from './load.ts';
import type { VariableName } from './variables.ts';

/** `off` is plain HTTP, behind a proxy that speaks HTTPS. */
export type TlsConfig = ReturnType<typeof readTls>;

/** What an order at a certificate authority needs (RFC 8555). */
export type AcmeConfig = ReturnType<typeof readAcme>;

/** Whether a missing agreement to the authority's terms is a problem already. */
type Agreement = 'needed' | 'asked';

export function readTls(reader: Reader, agreement: Agreement = 'needed') {
  const { value, failed, report, stop } = reader;
  const [tls, cert, key] = [
    value('EARSHOT_TLS'),
    value('EARSHOT_TLS_CERT'),
    value('EARSHOT_TLS_KEY'),
  ];
  // A value that cannot be used is reported even where it is not needed.
  failed(...acmeNames);
  if (failed('EARSHOT_TLS')) return stop();
  if (tls === 'acme') return readAcme(reader, agreement);
  if (tls === 'off') {
    if (cert === undefined && key === undefined) return { kind: 'off' as const };
    report('EARSHOT_TLS', 'EARSHOT_TLS=off does not go with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY.');
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
    'To let earshot get its certificate: EARSHOT_TLS=acme. Behind a proxy: EARSHOT_TLS=off.',
  );
  return stop();
}

/** For commands that order. Throws `configuration` where the certificate is not ours to get. */
export function readOwnAcme(reader: Reader, agreement: Agreement) {
  const tls = reader.value('EARSHOT_TLS');
  reader.failed(...acmeNames);
  if (tls === 'acme' || reader.failed('EARSHOT_TLS')) return readAcme(reader, agreement);
  throw new AppError(
    'configuration',
    `EARSHOT_TLS is ${tls}: earshot gets no certificate itself. Set EARSHOT_TLS=acme, or renew it where it comes from.`,
  );
}

/** For a look at the certificate. Throws `configuration` behind a proxy, which has it. */
export function readServedTls(reader: Reader) {
  const tls = readTls(reader, 'asked');
  if (tls.kind !== 'off') return tls;
  if (reader.failed(...acmeNames)) return reader.stop();
  throw new AppError(
    'configuration',
    'EARSHOT_TLS is off: the proxy in front has the certificate. Look there, or run `earshot doctor`.',
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
      'EARSHOT_TLS=acme does not go with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY: remove them, or set EARSHOT_TLS=files.',
    );
  }
  const isAgreed = value('EARSHOT_ACME_AGREE') === 'yes' || agreement === 'asked';
  if (!isAgreed && !failed('EARSHOT_ACME_AGREE')) {
    report(
      'EARSHOT_ACME_AGREE',
      "EARSHOT_TLS=acme needs your agreement to the authority's terms of service: read them (`earshot certificate test` shows where), then set EARSHOT_ACME_AGREE=yes.",
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
    /** The name that the certificate is for. */
    host,
    email: value('EARSHOT_ACME_EMAIL'),
    challenge: value('EARSHOT_ACME_CHALLENGE'),
    /** Where http-01 challenges are answered. */
    httpListen: value('EARSHOT_ACME_HTTP_LISTEN'),
    /** PEM text of roots that the authority's own HTTPS is checked against besides the system's. */
    extraCaPem: readCa(reader),
    /** External account binding. */
    eab: keyId === undefined || hmacKey === undefined ? undefined : { keyId, hmacKey },
  };
}

/** RFC 1123, 2.1: no underscores, no wildcards. */
const hostName =
  /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

/** Any text where a problem is reported. */
function hostToCertify({ value, failed, report }: Reader): string {
  const publicUrl = value('EARSHOT_PUBLIC_URL');
  const refuse = (message: string) => report('EARSHOT_PUBLIC_URL', message);
  const host = publicUrl === undefined ? '' : new URL(publicUrl).hostname.replace(/\.$/, '');
  if (publicUrl === undefined) {
    if (!failed('EARSHOT_PUBLIC_URL'))
      refuse(
        'EARSHOT_TLS=acme needs EARSHOT_PUBLIC_URL: the name in it is what the certificate is for.',
      );
  } else if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0) {
    refuse(
      `EARSHOT_PUBLIC_URL holds the address ${host}; EARSHOT_TLS=acme needs a name that leads to it.`,
    );
  } else if (!hostName.test(host)) {
    refuse(
      `EARSHOT_PUBLIC_URL holds ${host}, for which no certificate can be had: a name has letters, digits and dashes, and dots between its parts.`,
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
    report(
      'EARSHOT_ACME_CA',
      `EARSHOT_ACME_CA names ${file}, which does not hold PEM certificates alone.`,
    );
  } catch {
    report('EARSHOT_ACME_CA', `EARSHOT_ACME_CA names ${file}, which cannot be read.`);
  }
  return undefined;
}
