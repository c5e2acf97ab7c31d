/** Certificate chain and private key: loads, checks and describes them, and watches for changes. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { AppError, errorText, readFaultOf } from '../domain/app-error.ts';
import { type Finding, findingOf } from '../domain/finding.ts';

export interface CertificateFiles {
  cert: string;
  key: string;
}

/** A checked pair (PEM), and details of its certificate. */
export type LoadedCertificate = ReturnType<typeof checkKeyPair>;

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
) {
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
    /** DNS names and IP addresses. */
    names: (certificate.subjectAltName ?? '')
      .split(', ')
      .map((name) => name.replace(/^(DNS|IP Address):/, '')),
    issuer: certificate.issuer.split('\n').join(', '),
    serialNumber: certificate.serialNumber,
    covers: (host: string) =>
      (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined,
  };
}

async function readPem(file: string, variable: string): Promise<string> {
  return readFile(file, 'utf8').catch((cause: unknown) => {
    const message = `${variable} is ${file}, but ${readFaultOf(cause)}.`;
    throw new AppError('configuration', message, { cause });
  });
}

function parsed<Value>(file: string, content: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new AppError('configuration', `${file} does not contain ${content}.`, { cause });
  }
}

/** Returns why the catalogue will reject a certificate, to follow "certificate ". `host` is that of the public URL. */
export function certificateFaults(
  { notAfter, selfSigned, covers }: LoadedCertificate,
  { host, nowUs }: { host: string | undefined; nowUs: number },
): string[] {
  return [
    ...(notAfter.getTime() * 1000 <= nowUs ? ['has expired'] : []),
    ...(selfSigned ? ['is self-signed'] : []),
    ...(host === undefined || covers(host) ? [] : [`is not valid for the host ${host}`]),
  ];
}

/** Checks the files for `earshot doctor`. */
export function checkCertificateFiles(
  files: CertificateFiles,
  expected: { host: string | undefined; nowUs: number },
): Promise<Finding[]> {
  const advice =
    'Set EARSHOT_TLS_CERT and EARSHOT_TLS_KEY to the files of a valid certificate of a public authority and its key.';
  return findingOf('certificate files', advice, async () => {
    const loaded = await loadCertificateFiles(files);
    const [fault] = certificateFaults(loaded, expected);
    if (fault === undefined) {
      return `Key and certificate match. Valid until ${loaded.notAfter.toISOString().slice(0, 10)}.`;
    }
    throw new AppError('configuration', `The certificate in ${files.cert} ${fault}.`);
  });
}

/** Polling works with links, mounts and containers. */
export const watchIntervalMs = 10_000;

/**
 * Loads the certificate at intervals, and calls `onChange` with a changed one. Reports a failure once and keeps the
 * certificate in use: two files may be read between their changes.
 */
export function watchCertificate(options: {
  /** Resolves with null while there is none. */
  load: () => Promise<LoadedCertificate | null>;
  current: LoadedCertificate | null;
  intervalMs: number;
  onChange: (pair: LoadedCertificate) => void;
  onProblem: (error: unknown) => void;
}) {
  const { load, intervalMs, onChange, onProblem } = options;
  let { current } = options;
  let reported = '';
  /** Reads now instead of at the next interval. */
  const check = async (): Promise<void> => {
    try {
      const loaded = await load();
      reported = '';
      if (loaded === null || (loaded.cert === current?.cert && loaded.key === current.key)) return;
      current = loaded;
      onChange(loaded);
    } catch (error) {
      if (errorText(error) !== reported) onProblem(error);
      reported = errorText(error);
    }
  };
  const timer = setInterval(() => void check(), intervalMs).unref();
  return { check, stop: () => clearInterval(timer) };
}
