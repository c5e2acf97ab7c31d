/** Certificates for loopback. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KeyPair } from '../../src/core/http/listener.ts';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';

/** Creates a certificate, by default valid for some days, and the root of its authority, PEM. */
export async function createKeyPair(
  validity: { notAfterMs?: number } = {},
): Promise<{ caPem: string; keyPair: KeyPair }> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const issued = await authority.issue({ hosts: ['localhost', '127.0.0.1'], ...validity });
  const keyPair = { cert: issued.certificatePem, key: issued.keyPem };
  return { caPem: authority.certificatePem, keyPair };
}

/** Creates a certificate, and writes it and its key into a folder. */
export async function writeKeyPair(
  folder: string,
  validity?: Parameters<typeof createKeyPair>[0],
): Promise<{ caPem: string; files: KeyPair }> {
  const { caPem, keyPair } = await createKeyPair(validity);
  const files = { cert: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') };
  writeFileSync(files.cert, keyPair.cert);
  writeFileSync(files.key, keyPair.key, { mode: 0o600 });
  return { caPem, files };
}
