/** Certificate chain and private key: loaded from files, checked, described, and watched for changes. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { AppError, errorCodeOf, errorText } from '../domain/app-error.ts';
import { type Finding, failedFinding } from '../domain/finding.ts';

export interface CertificateFiles {
  cert: string;
  key: string;
}

/** A pair that has been checked, PEM, and what its certificate says. */
export interface LoadedCertificate {
  cert: string;
  key: string;
  notBefore: Date;
  notAfter: Date;
  selfSigned: boolean;
  /** True when it is valid for a host name. */
  covers(host: string): boolean;
}

/**
 * Loads the pair. Rejects with `configuration` when a file cannot be read, is not PEM, or when the
 * key is not the certificate's. An expired certificate loads: serving it is better than nothing,
 * and the log warns of it.
 */
export async function loadCertificateFiles(files: CertificateFiles): Promise<LoadedCertificate> {
  const [cert, key] = await Promise.all([
    readPem(files.cert, 'EARSHOT_TLS_CERT'),
    readPem(files.key, 'EARSHOT_TLS_KEY'),
  ]);
  return checkKeyPair({ cert, key }, files);
}

/** Checks a pair, PEM. `names` are where its halves come from, for the `configuration` it throws. */
export function checkKeyPair(
  { cert, key }: { cert: string; key: string },
  names: CertificateFiles,
): LoadedCertificate {
  const certificate = parsed(names.cert, 'a PEM certificate', () => new X509Certificate(cert));
  const privateKey = parsed(names.key, 'a PEM private key without passphrase', () =>
    createPrivateKey(key),
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new AppError(
      'configuration',
      `The key in ${names.key} does not belong to the certificate in ${names.cert}.`,
      { advice: 'Both must come from the same order.' },
    );
  }
  // What OpenSSL will not serve, such as a key that is too short, shows only here.
  parsed(names.cert, 'a certificate that is strong enough to be served', () =>
    createSecureContext({ cert, key }),
  );
  return {
    cert,
    key,
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
    // Not checkIssued: it says no to one that may sign no certificates, its own neither.
    selfSigned:
      certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey),
    covers: (host) =>
      (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined,
  };
}

async function readPem(file: string, variable: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (cause) {
    const code = errorCodeOf(cause);
    const reason = code === 'ENOENT' ? 'there is no such file' : `it cannot be read (${code})`;
    throw new AppError('configuration', `${variable} names ${file}, but ${reason}.`, { cause });
  }
}

function parsed<Value>(file: string, what: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new AppError('configuration', `${file} does not hold ${what}.`, { cause });
  }
}

/** Describes a chain, PEM, the server's certificate first. Throws for what is not PEM. */
export function certificateFacts(chainPem: string) {
  const certificate = new X509Certificate(chainPem);
  const names = certificate.subjectAltName?.split(', ') ?? [];
  return {
    /** DNS names and addresses that it is valid for. */
    names: names.map((name) => name.replace(/^(DNS|IP Address):/, '')),
    issuer: certificate.issuer.split('\n').join(', '),
    serialNumber: certificate.serialNumber,
    /** SHA-256, as pairs of hexadecimal digits. */
    fingerprint: certificate.fingerprint256,
    keyType: keyTypeOf(certificate),
    validFrom: certificate.validFromDate,
    validTo: certificate.validToDate,
    /** Certificates that are sent: the server's, and those between it and a root. */
    chainLength: chainPem.split('-----BEGIN CERTIFICATE-----').length - 1,
  };
}

/** Such as `EC P-256` or `RSA 2048`. */
function keyTypeOf({ publicKey }: X509Certificate): string {
  const { namedCurve, modulusLength } = publicKey.asymmetricKeyDetails ?? {};
  const curves: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384' };
  const kind = (publicKey.asymmetricKeyType ?? 'unknown').toUpperCase();
  return `${kind} ${namedCurve === undefined ? (modulusLength ?? '') : (curves[namedCurve] ?? namedCurve)}`.trim();
}

/** The doctor's check of the files. `host` is the name in the public URL; undefined where there is none. */
export async function checkCertificateFiles(options: {
  files: CertificateFiles;
  host: string | undefined;
  nowUs: () => number;
}): Promise<Finding[]> {
  const check = 'certificate files';
  const { files, host, nowUs } = options;
  const fail = (fault: string, advice: string): Finding[] => [
    { check, state: 'fail', message: `The certificate in ${files.cert} ${fault}.`, advice },
  ];
  try {
    const { notAfter, selfSigned, covers } = await loadCertificateFiles(files);
    if (notAfter.getTime() * 1000 <= nowUs()) {
      return fail('has expired', 'Renew it; the receiver takes the new files up by itself.');
    }
    if (selfSigned) {
      const fault = 'is self-signed, and the catalogue refuses such';
      return fail(fault, 'Get one of a public authority.');
    }
    if (host !== undefined && !covers(host)) {
      return fail(`is not for ${host}`, 'Order one for the name in EARSHOT_PUBLIC_URL.');
    }
    const day = notAfter.toISOString().slice(0, 10);
    const message = `They fit together; the certificate ends on ${day}.`;
    return [{ check, state: 'pass', message }];
  } catch (error) {
    const advice = 'Name the files of the certificate in EARSHOT_TLS_CERT and EARSHOT_TLS_KEY.';
    return [failedFinding(check, error, advice)];
  }
}

/** Polling works everywhere: with links, mounts and containers. */
export const watchIntervalMs = 10_000;

/**
 * Reads the files at intervals, and passes a changed pair on when it is whole. A pair that does not load or does not
 * fit is reported once and the one in use stays: files that are written one after the other are seen half-way.
 */
export function watchCertificateFiles(options: {
  files: CertificateFiles;
  current: LoadedCertificate;
  intervalMs: number;
  onChange: (pair: LoadedCertificate) => void;
  onProblem: (error: unknown) => void;
}) {
  const { files, intervalMs, onChange, onProblem } = options;
  let { cert, key } = options.current;
  let reported = '';
  let reading: Promise<void> | undefined;

  async function read() {
    try {
      const loaded = await loadCertificateFiles(files);
      reported = '';
      if (loaded.cert === cert && loaded.key === key) return;
      onChange(loaded);
      ({ cert, key } = loaded);
    } catch (error) {
      const message = errorText(error);
      if (message !== reported) onProblem(error);
      reported = message;
    }
  }

  /** Reads now instead of at the next interval. */
  function check(): Promise<void> {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  const timer = setInterval(() => void check(), intervalMs);
  timer.unref();
  return { check, stop: () => clearInterval(timer) };
}
