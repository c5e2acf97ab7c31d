/** Certificates that the sandbox does not issue: with an intermediate authority, as public ones have, and self-signed. */
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
  return {
    rootPem: root.toString('pem'),
    middlePem: middle.toString('pem'),
    leafPem: leaf.toString('pem'),
    keyPem: await keyPemOf(leafKeys),
  };
}

/** Creates a self-signed certificate for localhost. */
export async function createSelfSigned() {
  const keys = await createKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=localhost',
    keys,
    signingAlgorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }])],
  });
  return { certificatePem: certificate.toString('pem'), keyPem: await keyPemOf(keys) };
}

async function keyPemOf({ privateKey }: Awaited<ReturnType<typeof createKeys>>) {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', privateKey);
  return `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`;
}

function createKeys() {
  return webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
}
