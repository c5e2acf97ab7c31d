/** The id under which an authority is asked about a certificate (RFC 9773, 4.1). */
import { webcrypto } from 'node:crypto';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { expect, it } from 'vitest';
import { createSelfSigned } from '../../../src/sandbox/certificate-authority.ts';
import { certificateIdOf } from '../../../src/tls/acme/renewal-time.ts';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };
/** Of the example in RFC 9773, 4.1. */
const keyIdOfRfc = '69885b6b87464041e1b37b847ba0ae2cde01c8d4';

async function certificate(serialNumber: string, extensions: x509.Extension[]): Promise<string> {
  const { publicKey, privateKey } = await webcrypto.subtle.generateKey(algorithm, true, ['sign']);
  const made = await x509.X509CertificateGenerator.create({
    serialNumber,
    subject: 'CN=earshot.example.org',
    issuer: 'CN=an authority',
    publicKey,
    signingKey: privateKey,
    signingAlgorithm: algorithm,
    extensions,
  });
  return made.toString('pem');
}

const byKeyId = (keyId: string) => [new x509.AuthorityKeyIdentifierExtension(keyId)];

it.each([
  ['whose first bit is set: the example of RFC 9773', '87654321', 'AIdlQyE'],
  ['whose first bit is not set', '7f654321', Buffer.from('7f654321', 'hex').toString('base64url')],
  ['of one byte', '01', 'AQ'],
  ['of one byte with the first bit set', '80', 'AIA'],
  ['of twenty bytes', `7a${'00ff'.repeat(9)}01`, 'egD_AP8A_wD_AP8A_wD_AP8A_wE'],
])('holds the serial number %s, as DER has it', async (_title, serial, text) => {
  const pem = await certificate(serial, byKeyId(keyIdOfRfc));
  expect(certificateIdOf(pem)).toBe(`aYhba4dGQEHhs3uEe6CuLN4ByNQ.${text}`);
});

it('holds the key identifier in base64url without padding', async () => {
  const pem = await certificate('01', byKeyId('fbff00'));
  expect(certificateIdOf(pem)).toBe('-_8A.AQ');
});

it('is of the first certificate of a chain', async () => {
  const [first, second] = await Promise.all([
    certificate('01', byKeyId('aa')),
    certificate('02', byKeyId('bb')),
  ]);
  expect(certificateIdOf(`${first}\n${second}`)).toBe('qg.AQ');
});

it.each([
  ['no key identifier of the issuer', []],
  ['one that names the issuer instead', [new x509.Extension('2.5.29.35', false, hex('3000'))]],
  ['one that cannot be read', [new x509.Extension('2.5.29.35', false, hex('04ff'))]],
])('is not there with %s', async (_title, extensions) => {
  expect(certificateIdOf(await certificate('01', extensions))).toBeNull();
});

it('is not there for one that vouches for itself', async () => {
  const made = await createSelfSigned({ hosts: ['earshot.example.org'], now: Date.now });
  expect(certificateIdOf(made.certificatePem)).toBeNull();
});

function hex(text: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(text, 'hex'));
}
