/** Certificate chain and private key: loading, and checks. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { AppError } from '../../core/terms/app-error.ts';
import { type Fault, faultError, faultOf } from '../../core/terms/faults.ts';

export interface CertificateFiles {
  cert: string;
  key: string;
}

/** A checked pair (PEM), and details of its certificate. */
export type LoadedCertificate = ReturnType<typeof checkKeyPair>;

/**
 * Loads the pair. Throws `configuration` when a file cannot be read, is not PEM, or when the key does not match. An
 * expired certificate loads: it is better than none, and the log warns of it.
 */
export function loadCertificateFiles(files: CertificateFiles): LoadedCertificate {
  const cert = readPem(files.cert, 'EARSHOT_TLS_CERT');
  return checkKeyPair({ cert, key: readPem(files.key, 'EARSHOT_TLS_KEY') }, files);
}

function readPem(file: string, variable: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw faultError('configuration', `${variable} is ${file}`, cause);
  }
}

/** Checks a pair (PEM). Throws `configuration` with `names`, the sources of the two parts. */
export function checkKeyPair({ cert, key }: CertificateFiles, names: CertificateFiles) {
  const noCertificate = `${names.cert} does not contain a PEM certificate.`;
  const certificate = parsed(noCertificate, () => new X509Certificate(cert));
  const noKey = `${names.key} does not contain a PEM private key without passphrase.`;
  parsed(noKey, () => createPrivateKey(key));
  // Also refuses certificates that OpenSSL does not serve, for example with a key that is too short.
  const noPair = `The key in ${names.key} is too short, or does not belong to the certificate in ${names.cert}.`;
  parsed(noPair, () => createSecureContext({ cert, key }));
  const { subject, issuer, subjectAltName = '', validFromDate, validToDate } = certificate;
  return {
    ...{ cert, key, issuer: issuer.split('\n').join(', ') },
    notBeforeUs: validFromDate.getTime() * 1_000,
    notAfterUs: validToDate.getTime() * 1_000,
    // Not checkIssued, which is false for a certificate that is not a certificate authority.
    selfSigned: subject === issuer && certificate.verify(certificate.publicKey),
    /** DNS names and IP addresses. */
    names: subjectAltName.split(', ').map((name) => name.replace(/^(DNS|IP Address):/, '')),
    covers: (host: string) =>
      (isIP(host) ? certificate.checkIP(host) : certificate.checkHost(host)) !== undefined,
  };
}

function parsed<Value>(fault: string, parse: () => Value): Value {
  try {
    return parse();
  } catch (cause) {
    throw new AppError('configuration', fault, { cause });
  }
}

/** Returns why the catalogue will reject a certificate; null if it will not. `host` is that of the public URL. */
export function certificateFault(
  { notAfterUs, selfSigned, covers }: LoadedCertificate,
  { host, nowUs }: { host: string | undefined; nowUs: number },
): Fault | null {
  if (notAfterUs <= nowUs) return faultOf('CERT_HAS_EXPIRED');
  if (selfSigned) return faultOf('DEPTH_ZERO_SELF_SIGNED_CERT');
  return host === undefined || covers(host) ? null : faultOf('ERR_TLS_CERT_ALTNAME_INVALID');
}
