/** The certificate and credentials that all servers of one benchmark share. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createCertificateAuthority } from '../src/sandbox/certificate-authority.ts';

/** What a server presents and asks for, and what a client needs to reach it. */
export interface Endpoint {
  /** PEM of the throw-away authority that clients trust. */
  readonly authorityPem: string;
  /** PEM files. */
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly username: string;
  readonly password: string;
}

/** Issues a certificate for loopback and random credentials; the files go into `folder`. */
export async function createEndpoint(folder: string): Promise<Endpoint> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const issued = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const certificateFile = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  writeFileSync(certificateFile, issued.certificatePem);
  writeFileSync(keyFile, issued.keyPem, { mode: 0o600 });
  return {
    authorityPem: authority.certificatePem,
    certificateFile,
    keyFile,
    username: 'bench',
    password: randomBytes(18).toString('base64url'),
  };
}
