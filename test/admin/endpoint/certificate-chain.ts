/** Certificates that the sandbox does not issue: with an intermediate authority, as public ones have, and self-signed. */
import { webcrypto } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';

const signingAlgorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

type Keys = Awaited<ReturnType<typeof createKeys>>;

/** A name, and its keys. */
interface Party {
  name: string;
  keys: Keys;
}

async function createParty(name: string): Promise<Party> {
  return { name: `CN=${name}`, keys: await createKeys() };
}

/** Issues a certificate; one of itself if subject and issuer are the same. */
function issue(subject: Party, issuer: Party, extension: x509.Extension) {
  return x509.X509CertificateGenerator.create({
    ...{ subject: subject.name, publicKey: subject.keys.publicKey },
    ...{ issuer: issuer.name, signingKey: issuer.keys.privateKey },
    ...{ signingAlgorithm, extensions: [extension] },
  });
}

const localhost = new x509.SubjectAlternativeNameExtension([{ type: 'dns', value: 'localhost' }]);

/** Creates root, intermediate and server certificates for localhost, as PEM. */
export async function createChain() {
  const root = await createParty('a root');
  const middle = await createParty('an intermediate');
  const leaf = await createParty('localhost');
  const authority = (length?: number) => new x509.BasicConstraintsExtension(true, length, true);
  return {
    rootPem: (await issue(root, root, authority())).toString('pem'),
    middlePem: (await issue(middle, root, authority(0))).toString('pem'),
    leafPem: (await issue(leaf, middle, localhost)).toString('pem'),
    keyPem: await keyPemOf(leaf.keys),
  };
}

/** Creates a self-signed certificate for localhost. */
export async function createSelfSigned() {
  const own = await createParty('localhost');
  const certificate = await issue(own, own, localhost);
  return { certificatePem: certificate.toString('pem'), keyPem: await keyPemOf(own.keys) };
}

async function keyPemOf({ privateKey }: Keys) {
  const pkcs8 = await webcrypto.subtle.exportKey('pkcs8', privateKey);
  return `${x509.PemConverter.encode(pkcs8, 'PRIVATE KEY')}\n`;
}

function createKeys() {
  return webcrypto.subtle.generateKey(signingAlgorithm, true, ['sign', 'verify']);
}
