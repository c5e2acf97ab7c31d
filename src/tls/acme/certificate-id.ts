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
  const keyId = keyIdOf(parsed);
  if (keyId === undefined) return null;
  const serial = Buffer.from(parsed.serialNumber, 'hex');
  // The id is of DER's bytes, where a number whose first bit is set has a zero before it.
  const isLeadByZero = (serial[0] ?? 0) > 0x7f;
  const octets = isLeadByZero ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${octets.toString('base64url')}`;
}

/** An identifier that cannot be read is none: what only asks for advice must stop no renewal. */
function keyIdOf(parsed: ParsedCertificate): string | undefined {
  try {
    return parsed.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  } catch {
    return undefined;
  }
}
