/** A certificate chain with an intermediate authority, as public certificates have. */
import { webcrypto } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Creates root, intermediate and server certificates for localhost, as PEM. */
export async function createChain() {
  const rootKeys = await createKeys();
  const middleKeys = await createKeys();
  const leafKeys = await createKeys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=a root',
    keys: rootKeys,
    signingAlgorithm,
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  const middle = await x509.X509CertificateGenerator.create({
    subject: 'CN=an intermediate',
    issuer: 'CN=a root',
    publicKey: middleKeys.publicKey,
    signingKey: rootKeys.privateKey,
    signingAlgorithm,
    extensions: [new x509.BasicConstraintsExtension(true, 0, true)],
  });
  const leaf = await x509.X509CertificateGenerator.create({
    subject: 'CN=localhost',
    issuer: 'CN=an intermediate',
    publicKey: leafKeys.publicKey,
    signingKey: middleKeys.privateKey,
    signingAlgorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
  });
  const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey('pkcs8', leafKeys.privateKey));
  return {
    rootPem: root.toString('pem'),
    middlePem: middle.toString('pem'),
    leafPem: leaf.toString('pem'),
    keyPem: `-----BEGIN PRIVATE KEY-----\n${pkcs8.toString('base64')}\n-----END PRIVATE KEY-----\n`,
  };
}

function createKeys() {
  return webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
}
