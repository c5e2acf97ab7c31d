/** Reads a certificate chain and its private key from files, and checks that they fit. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { AppError } from '../domain/app-error.ts';
import { errorCodeOf } from '../domain/error-code.ts';

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
 * and the one who starts the program is told.
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
