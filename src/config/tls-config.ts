/** Where the certificate comes from: files, a certificate authority, or nowhere. */
import { isIP } from 'node:net';
import { AppError } from '../domain/app-error.ts';
import { frozen } from './frozen.ts';
import { holdsCertificates } from './holds-certificates.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';
import type { Values } from './variables.ts';

/** `off` is plain HTTP, behind a proxy that speaks HTTPS. */
export type TlsConfig = { kind: 'files'; cert: string; key: string } | AcmeConfig | { kind: 'off' };

/** What an order at a certificate authority needs (RFC 8555). */
export interface AcmeConfig {
  kind: 'acme';
  directoryUrl: string;
  /** The name that the certificate is for. */
  host: string;
  email: string | undefined;
  challenge: 'http-01' | 'tls-alpn-01';
  /** Where http-01 challenges are answered. */
  httpListen: { host: string; port: number };
  /** PEM text of roots that the authority's own HTTPS is checked against besides the system's. */
  extraCaPem: string | undefined;
  /** External account binding. */
  eab: { keyId: string; hmacKey: string } | undefined;
}

export const tlsKeys = [
  'tls',
  'tlsCert',
  'tlsKey',
  'acmeDirectory',
  'acmeEmail',
  'acmeAgree',
  'acmeChallenge',
  'acmeHttpListen',
  'acmeCa',
  'acmeEabKeyId',
  'acmeEabHmacKey',
] as const;

type TlsValues = Values<(typeof tlsKeys)[number] | 'publicUrl'>;

/** What is wrong is added to `problems`; then the result says `off` and is not to be used. */
export function readTls(
  values: TlsValues,
  environment: Pick<Environment, 'readFile'>,
  problems: string[],
): TlsConfig {
  const { tls, tlsCert: cert, tlsKey: key } = values;
  if (tls === 'acme') return readAcme(values, environment, problems) ?? { kind: 'off' };
  if (tls === 'off' && (cert !== undefined || key !== undefined)) {
    problems.push('EARSHOT_TLS=off does not go with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY.');
  }
  // Undefined: none of the three, which has been reported.
  if (tls !== 'files') return { kind: 'off' };
  if (cert !== undefined && key !== undefined) return { kind: 'files', cert, key };
  const missing = [
    ...(cert === undefined ? ['EARSHOT_TLS_CERT'] : []),
    ...(key === undefined ? ['EARSHOT_TLS_KEY'] : []),
  ];
  problems.push(
    `HTTPS needs ${missing.join(' and ')}. To let earshot get its certificate: EARSHOT_TLS=acme. Behind a proxy: EARSHOT_TLS=off.`,
  );
  return { kind: 'off' };
}

export interface AcmeCommandConfig {
  acme: AcmeConfig;
  dataDir: string;
  listen: { host: string; port: number };
  /** That the user agrees to the authority's terms. */
  agreed: boolean;
}

/**
 * What commands need that order. Throws `configuration`, also when the certificate is not ours to get.
 * With `agreement: 'asked'`, one that is missing is no problem yet.
 */
export function readAcmeConfig(
  environment: Environment,
  { agreement }: { agreement: 'needed' | 'asked' } = { agreement: 'needed' },
): Readonly<AcmeCommandConfig> {
  const keys = [...tlsKeys, 'publicUrl', 'dataDir', 'listen'] as const;
  const { values, problems } = readVariables(environment, keys);
  const { tls, dataDir, listen } = values;
  if (tls !== undefined && tls !== 'acme') {
    throw new AppError(
      'configuration',
      `EARSHOT_TLS is ${tls}: earshot gets no certificate itself. Set EARSHOT_TLS=acme, or renew it where it comes from.`,
    );
  }
  const agreed = values.acmeAgree === 'yes';
  const assumed = agreement === 'asked' ? { ...values, acmeAgree: 'yes' as const } : values;
  const acme = readAcme(assumed, environment, problems);
  refuseProblems(problems);
  if (acme === undefined) throw new AppError('internal', 'A problem was not told.');
  return frozen({ acme, dataDir, listen, agreed });
}

/** What a look at the certificate needs. Throws `configuration`, also behind a proxy, which has it. */
export function readServedCertificateConfig(
  environment: Environment,
): Readonly<{ tls: Exclude<TlsConfig, { kind: 'off' }>; dataDir: string }> {
  const { values, problems } = readVariables(environment, [...tlsKeys, 'publicUrl', 'dataDir']);
  const tls = readTls({ ...values, acmeAgree: 'yes' }, environment, problems);
  refuseProblems(problems);
  if (tls.kind !== 'off') return frozen({ tls, dataDir: values.dataDir });
  throw new AppError(
    'configuration',
    'EARSHOT_TLS is off: the proxy in front has the certificate. Look there, or run `earshot doctor`.',
  );
}

function readAcme(
  values: TlsValues,
  { readFile }: Pick<Environment, 'readFile'>,
  problems: string[],
): AcmeConfig | undefined {
  const before = problems.length;
  const host = hostToCertify(values.publicUrl, problems);
  const { tlsCert, tlsKey, acmeEabKeyId: keyId, acmeEabHmacKey: hmacKey } = values;
  if (tlsCert !== undefined || tlsKey !== undefined) {
    problems.push(
      'EARSHOT_TLS=acme does not go with EARSHOT_TLS_CERT or EARSHOT_TLS_KEY: remove them, or set EARSHOT_TLS=files.',
    );
  }
  const told = (name: string) => problems.some((problem) => problem.startsWith(name));
  if (values.acmeAgree !== 'yes' && !told('EARSHOT_ACME_AGREE')) {
    problems.push(
      "EARSHOT_TLS=acme needs your agreement to the authority's terms of service: read them (`earshot certificate test` shows where), then set EARSHOT_ACME_AGREE=yes.",
    );
  }
  if ((keyId === undefined) !== (hmacKey === undefined) && !told('EARSHOT_ACME_EAB_')) {
    problems.push(
      'EARSHOT_ACME_EAB_KEY_ID and EARSHOT_ACME_EAB_HMAC_KEY belong together: set both.',
    );
  }
  const extraCaPem = readCa(values.acmeCa, readFile, problems);
  const { acmeDirectory, acmeEmail: email, acmeChallenge, acmeHttpListen } = values;
  if (problems.length > before || host === undefined) return undefined;
  return {
    kind: 'acme',
    directoryUrl: acmeDirectory,
    host,
    email,
    challenge: acmeChallenge,
    httpListen: acmeHttpListen,
    extraCaPem,
    eab: keyId === undefined || hmacKey === undefined ? undefined : { keyId, hmacKey },
  };
}

function hostToCertify(publicUrl: string | undefined, problems: string[]): string | undefined {
  if (publicUrl === undefined) {
    if (!problems.some((problem) => problem.startsWith('EARSHOT_PUBLIC_URL'))) {
      problems.push(
        'EARSHOT_TLS=acme needs EARSHOT_PUBLIC_URL: the name in it is what the certificate is for.',
      );
    }
    return undefined;
  }
  const host = new URL(publicUrl).hostname.replace(/\.$/, '');
  if (isIP(host.replace(/^\[(.*)\]$/, '$1')) !== 0) {
    problems.push(
      `EARSHOT_PUBLIC_URL holds the address ${host}; EARSHOT_TLS=acme needs a name that leads to it.`,
    );
    return undefined;
  }
  if (hostName.test(host)) return host;
  problems.push(
    `EARSHOT_PUBLIC_URL holds ${host}, for which no certificate can be had: a name has letters, digits and dashes, and dots between its parts.`,
  );
  return undefined;
}

/** RFC 1123, 2.1: no underscores, no wildcards. */
const hostName =
  /^(?=.{1,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i;

function readCa(
  file: string | undefined,
  readFile: (path: string) => string,
  problems: string[],
): string | undefined {
  if (file === undefined) return undefined;
  try {
    const pem = readFile(file);
    if (holdsCertificates(pem)) return pem;
    problems.push(`EARSHOT_ACME_CA names ${file}, which does not hold PEM certificates alone.`);
  } catch {
    problems.push(`EARSHOT_ACME_CA names ${file}, which cannot be read.`);
  }
  return undefined;
}
