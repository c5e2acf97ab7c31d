/** Certificate files: what loads, and what is said of those that do not. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createSecureContext } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { loadCertificateFiles } from '../../src/tls/certificate-files.ts';
import { at, createFolder, createPairs, nowMs } from './certificate-folder.ts';

describe('a pair of certificate files', () => {
  it('that belong together is loaded with what its certificate says', async () => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    const loaded = await loadCertificateFiles(folder.files);
    expect(loaded).toMatchObject({
      cert: pair.certificatePem,
      key: pair.keyPem,
      notAfter: new X509Certificate(pair.certificatePem).validToDate,
    });
    const hosts = ['localhost', '127.0.0.1', 'example.org', '127.0.0.2'];
    expect(hosts.map(loaded.covers)).toEqual([true, true, false, false]);
    expect(() => createSecureContext(loaded)).not.toThrow();
  });

  it('keeps the whole chain, and speaks of its first certificate', async () => {
    const { authority, pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    const chain = `${pair.certificatePem}\n${authority.certificatePem}\n`;
    folder.writeCert(chain);
    const loaded = await loadCertificateFiles(folder.files);
    expect(loaded).toMatchObject({ cert: chain });
    expect(loaded.covers('localhost')).toBe(true);
  });

  it('loads when it has expired: the one who starts the program is told', async () => {
    const { authority } = await createPairs(1);
    const notAfterMs = nowMs - 1000;
    const folder = createFolder();
    folder.write(await authority.issue({ hosts: ['localhost'], notAfterMs }));
    expect((await loadCertificateFiles(folder.files)).notAfter).toEqual(new Date(notAfterMs));
  });

  it.each([
    ['cert', 'EARSHOT_TLS_CERT'],
    ['key', 'EARSHOT_TLS_KEY'],
  ] as const)('is refused without its %s file, which is named', async (name, variable) => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    rmSync(folder.files[name]);
    await expect(loadCertificateFiles(folder.files)).rejects.toMatchObject({
      code: 'configuration',
      text: `${variable} names ${folder.files[name]}, but there is no such file.`,
    });
  });

  it('is refused with the reason when a file cannot be read', async () => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    const files = { ...folder.files, key: `${folder.files.key}/..` };
    await expect(loadCertificateFiles(files)).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringMatching(/^EARSHOT_TLS_KEY names .* cannot be read \(E[A-Z]+\)\.$/),
    });
  });

  it.each([
    ['text', 'nonsense'],
    ['nothing', ''],
    ['half a PEM block', '-----BEGIN CERTIFICATE-----\nMIIB'],
  ])('is refused when the certificate file holds %s', async (_title, text) => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    folder.writeCert(text);
    await expect(loadCertificateFiles(folder.files)).rejects.toMatchObject({
      code: 'configuration',
      text: `${folder.files.cert} does not hold a PEM certificate.`,
    });
  });

  it('is refused when the two files are mixed up', async () => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write({ certificatePem: pair.keyPem, keyPem: pair.certificatePem });
    await expect(loadCertificateFiles(folder.files)).rejects.toMatchObject({
      code: 'configuration',
    });
  });

  it.each([
    ['text', () => 'nonsense'],
    ['nothing', () => ''],
    ['half a key', (pem: string) => pem.slice(0, pem.length / 2)],
    ['a key with a passphrase', encrypted],
  ])('is refused when the key file holds %s, and shows none of it', async (_title, change) => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    const keyPem = change(pair.keyPem);
    folder.writeKey(keyPem);
    const error = await loadCertificateFiles(folder.files).catch((refusal: Error) => refusal);
    expect(error).toMatchObject({
      code: 'configuration',
      text: `${folder.files.key} does not hold a PEM private key without passphrase.`,
    });
  });

  it('is refused when the key is that of another certificate', async () => {
    const { pairs } = await createPairs(2);
    const folder = createFolder();
    folder.write({
      certificatePem: at(pairs, 0).certificatePem,
      keyPem: at(pairs, 1).keyPem,
    });
    await expect(loadCertificateFiles(folder.files)).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringContaining('does not belong to the certificate'),
    });
  });
});

function encrypted(pem: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  return createPrivateKey(pem).export(options).toString();
}
