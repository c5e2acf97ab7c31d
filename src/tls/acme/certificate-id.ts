/** How an authority knows a certificate when it is asked for its advice (RFC 9773, 4.1). */
import 'reflect-metadata';
import { X509Certificate } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  X509Certificate as ParsedCertificate,
} from '@peculiar/x509';

/** `base64url(key identifier of the issuer).base64url(serial number)`; null without that identifier. */
export function certificateIdOf(chainPem: string): string | null {
  const leaf = new X509Certificate(chainPem);
  const parsed = new ParsedCertificate(leaf.raw);
  const keyId = parsed.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  if (keyId === undefined) return null;
  const serial = Buffer.from(parsed.serialNumber, 'hex');
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${serial.toString('base64url')}`;
}
