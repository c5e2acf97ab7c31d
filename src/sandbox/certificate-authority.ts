/** Issues temporary certificates, so that the demo and tests run over real HTTPS without a public certificate authority. */
import { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
// The next import needs the metadata store that this one adds to Reflect.
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

/** A certificate and its private key, both PEM. The key is PKCS#8 and not encrypted. */
export interface KeyedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

interface CertificateRequest {
  /** DNS names and IP addresses (IPv6 without brackets) in the certificate; at least one. */
  readonly hosts: readonly string[];
  /** End of validity, ms since 1970 (default: in 30 days). */
  readonly notAfterMs?: number;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
const backdatedMs = 3_600_000;
const validityMs = 30 * 86_400_000;
const rootName = 'CN=earshot sandbox authority';

/** Creates a certificate authority in memory. Its key is lost when the process exits. */
export async function createCertificateAuthority({ now }: { now: () => number }) {
  const keys = await createKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: rootName,
    keys,
    signingAlgorithm: algorithm,
    ...validity(now()),
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return {
    /** Root certificate, PEM. Clients must be configured to trust it. */
    certificatePem: root.toString('pem'),
    /** Issues a server certificate signed by the root. */
    issue: async ({ hosts, notAfterMs }: CertificateRequest): Promise<KeyedCertificate> => {
      const leafKeys = await createKeys();
      const identifier = await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey);
      const leaf = await x509.X509CertificateGenerator.create({
        // A list, so that a host is never parsed as distinguished-name syntax.
        ...{ subject: [{ CN: hosts.slice(0, 1) }], issuer: rootName, signingAlgorithm: algorithm },
        ...{ ...validity(now(), notAfterMs), extensions: [...serverExtensions(hosts), identifier] },
        ...{ publicKey: leafKeys.publicKey, signingKey: keys.privateKey },
      });
      const key = await webcrypto.subtle.exportKey('pkcs8', leafKeys.privateKey);
      const keyPem = `${x509.PemConverter.encode(key, 'PRIVATE KEY')}\n`;
      return { certificatePem: leaf.toString('pem'), keyPem };
    },
  };
}

function createKeys() {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function validity(nowMs: number, notAfterMs = nowMs + validityMs) {
  // Backdated, so that a client whose clock is slightly slow accepts it too.
  return { notBefore: new Date(nowMs - backdatedMs), notAfter: new Date(notAfterMs) };
}

function serverExtensions(hosts: readonly string[]) {
  const names = hosts.map((value) => ({ type: isIP(value) ? 'ip' : 'dns', value }) as const);
  return [
    new x509.BasicConstraintsExtension(false, undefined, true),
    new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
    new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
    new x509.SubjectAlternativeNameExtension(names),
  ];
}
