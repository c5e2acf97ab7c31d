/** Tells a file of certificates from one that is something else. */
import { X509Certificate } from 'node:crypto';

/** True for one PEM certificate or more, all of them readable. */
export function holdsCertificates(pem: string): boolean {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.map((block) => new X509Certificate(block)).length > 0;
  } catch {
    return false;
  }
}
