/** The throw-away authority: what its certificates say and who accepts them. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  createCertificateAuthority,
  createSelfSigned,
} from '../../src/sandbox/certificate-authority.ts';

const nowMs = Date.UTC(2026, 4, 1, 12);
const now = () => nowMs;

describe('the certificate authority', () => {
  it('issues a server certificate for names and addresses, signed by its root', async () => {
    const authority = await createCertificateAuthority({ now });
    const issued = await authority.issue({ hosts: ['localhost', '127.0.0.1', '::1'] });
    const leaf = new X509Certificate(issued.certificatePem);
    const root = new X509Certificate(authority.certificatePem);
    expect(root.ca).toBe(true);
    expect(leaf.ca).toBe(false);
    expect(leaf.checkIssued(root)).toBe(true);
    expect(leaf.verify(root.publicKey)).toBe(true);
    expect(leaf.checkHost('localhost')).toBe('localhost');
    expect(leaf.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(leaf.checkIP('::1')).toBe('::1');
    expect(leaf.checkHost('example.com')).toBeUndefined();
  });

  it('gives a PKCS#8 key that belongs to the certificate', async () => {
    const authority = await createCertificateAuthority({ now });
    const { certificatePem, keyPem } = await authority.issue({ hosts: ['localhost'] });
    expect(keyPem).toContain('-----BEGIN PRIVATE KEY-----');
    const key = createPrivateKey(keyPem);
    expect(key.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(new X509Certificate(certificatePem).checkPrivateKey(key)).toBe(true);
  });

  it('starts validity an hour ago and ends it when told', async () => {
    const authority = await createCertificateAuthority({ now });
    const notAfterMs = nowMs + 60_000;
    const { certificatePem } = await authority.issue({ hosts: ['localhost'], notAfterMs });
    const leaf = new X509Certificate(certificatePem);
    expect(leaf.validFromDate.getTime()).toBe(nowMs - 3_600_000);
    expect(leaf.validToDate.getTime()).toBe(notAfterMs);
  });

  it('makes a self-signed certificate that is its own issuer', async () => {
    const { certificatePem } = await createSelfSigned({ hosts: ['localhost'], now });
    const certificate = new X509Certificate(certificatePem);
    expect(certificate.issuer).toBe(certificate.subject);
    expect(certificate.verify(certificate.publicKey)).toBe(true);
  });

  it('refuses to issue for no host at all', async () => {
    const authority = await createCertificateAuthority({ now });
    await expect(authority.issue({ hosts: [] })).rejects.toThrow(RangeError);
  });

  it('does not read a host as the syntax of a name', async () => {
    const { certificatePem } = await createSelfSigned({ hosts: ['a,O=Somebody Else'], now });
    expect(new X509Certificate(certificatePem).subject.split('\n')).toHaveLength(1);
  });
});
