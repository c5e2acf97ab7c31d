/** Certificate chain and private key: loads, checks and describes them, and watches their files. */
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

/** A checked pair (PEM), and details of its certificate. */
export interface LoadedCertificate {
  cert: string;
  key: string;
  notBefore: Date;
  notAfter: Date;
  selfSigned: boolean;
  /** True if it is valid for the host name. */
  covers(host: string): boolean;
}

/**
 * Loads the pair. Rejects with `configuration` when a file cannot be read, is not PEM, or when the key does
 * not match. An expired certificate loads: it is better than none, and the log warns of it.
 */
export async function loadCertificateFiles(files: CertificateFiles): Promise<LoadedCertificate> {
  const [cert, key] = await Promise.all([
    readPem(files.cert, 'EARSHOT_TLS_CERT'),
    readPem(files.key, 'EARSHOT_TLS_KEY'),
  ]);
  return checkKeyPair({ cert, key }, files);
}

/** Checks a pair (PEM). Throws `configuration` with `names`, the sources of the two parts. */
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
      { advice: 'Use the key with which the certificate was requested.' },
    );
  }
  // Finds certificates that OpenSSL does not serve, for example with a key that is too short.
  parsed(names.cert, 'a certificate with a sufficient security level', () =>
    createSecureContext({ cert, key }),
  );
  return {
    cert,
    key,
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
    // Not checkIssued, which is false for a certificate that is not a certificate authority.
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
    const reason =
      code === 'ENOENT' ? 'the file does not exist' : `the file cannot be read (${code})`;
    throw new AppError('configuration', `${variable} is ${file}, but ${reason}.`, { cause });
  }
}

function parsed<Value>(file: string, content: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new AppError('configuration', `${file} does not contain ${content}.`, { cause });
  }
}

/** Describes a chain (PEM), the server's certificate first. Throws for other content. */
export function certificateFacts(chainPem: string) {
  const certificate = new X509Certificate(chainPem);
  const names = certificate.subjectAltName?.split(', ') ?? [];
  return {
    /** DNS names and IP addresses. */
    names: names.map((name) => name.replace(/^(DNS|IP Address):/, '')),
    issuer: certificate.issuer.split('\n').join(', '),
    serialNumber: certificate.serialNumber,
    /** SHA-256, as pairs of hexadecimal digits. */
    fingerprint: certificate.fingerprint256,
    keyType: keyTypeOf(certificate),
    validFrom: certificate.validFromDate,
    validTo: certificate.validToDate,
    /** Number of certificates: the server's, and the intermediate ones. */
    chainLength: chainPem.split('-----BEGIN CERTIFICATE-----').length - 1,
  };
}

/** Returns for example `EC P-256` or `RSA 2048`. */
function keyTypeOf({ publicKey }: X509Certificate): string {
  const { namedCurve, modulusLength } = publicKey.asymmetricKeyDetails ?? {};
  const curves: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384' };
  const kind = (publicKey.asymmetricKeyType ?? 'unknown').toUpperCase();
  return `${kind} ${namedCurve === undefined ? (modulusLength ?? '') : (curves[namedCurve] ?? namedCurve)}`.trim();
}

/** Checks the files for `earshot doctor`. `host` is the name in the public URL; undefined without one. */
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
      return fail(
        'has expired',
        'Renew the certificate. The receiver loads the new files automatically.',
      );
    }
    if (selfSigned) {
      const fault = 'is self-signed, which the catalogue does not accept';
      return fail(fault, 'Get a certificate from a public authority.');
    }
    if (host !== undefined && !covers(host)) {
      const advice = 'Get a certificate for the name in EARSHOT_PUBLIC_URL.';
      return fail(`is not valid for ${host}`, advice);
    }
    const day = notAfter.toISOString().slice(0, 10);
    const message = `Key and certificate match. Valid until ${day}.`;
    return [{ check, state: 'pass', message }];
  } catch (error) {
    const advice =
      'Set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY to the files of the certificate and its key.';
    return [failedFinding(check, error, advice)];
  }
}

/** Polling works with links, mounts and containers. */
export const watchIntervalMs = 10_000;

/**
 * Reads the files at intervals, and calls `onChange` with a changed valid pair. Reports an invalid pair once and keeps
 * the one in use: the two files may be read between their changes.
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
