/** What a certificate chain says of itself, for people and programs to look at. */
import { X509Certificate } from 'node:crypto';

export interface CertificateFacts {
  /** DNS names and addresses that it is valid for. */
  names: string[];
  issuer: string;
  serialNumber: string;
  /** SHA-256, as pairs of hexadecimal digits. */
  fingerprint: string;
  /** Such as `EC P-256` or `RSA 2048`. */
  keyType: string;
  validFrom: Date;
  validTo: Date;
  /** Certificates that are sent: the server's, and those between it and a root. */
  chainLength: number;
}

/** `chainPem` holds the server's certificate first. Throws for what is not PEM. */
export function certificateFacts(chainPem: string): CertificateFacts {
  const certificate = new X509Certificate(chainPem);
  const names = certificate.subjectAltName?.split(', ') ?? [];
  return {
    names: names.map((name) => name.replace(/^(DNS|IP Address):/, '')),
    issuer: certificate.issuer.split('\n').join(', '),
    serialNumber: certificate.serialNumber,
    fingerprint: certificate.fingerprint256,
    keyType: keyTypeOf(certificate),
    validFrom: certificate.validFromDate,
    validTo: certificate.validToDate,
    chainLength: chainPem.split('-----BEGIN CERTIFICATE-----').length - 1,
  };
}

function keyTypeOf({ publicKey }: X509Certificate): string {
  const { namedCurve, modulusLength } = publicKey.asymmetricKeyDetails ?? {};
  const curves: Record<string, string> = { prime256v1: 'P-256', secp384r1: 'P-384' };
  const kind = (publicKey.asymmetricKeyType ?? 'unknown').toUpperCase();
  return `${kind} ${namedCurve === undefined ? (modulusLength ?? '') : (curves[namedCurve] ?? namedCurve)}`.trim();
}
