/** Certificate files: loading, error messages, and reloading of changed files. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  createCertificateAuthority,
  createSelfSigned,
  type KeyedCertificate,
} from '../../src/sandbox/certificate-authority.ts';
import {
  checkCertificateFiles,
  type LoadedCertificate,
  loadCertificateFiles,
  watchCertificate,
} from '../../src/tls/certificate.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const nowMs = Date.UTC(2026, 4, 1, 12);
const authority = await createCertificateAuthority({ now: () => nowMs });
const hosts = ['localhost', '127.0.0.1'];
const [pair, other] = [await authority.issue({ hosts }), await authority.issue({ hosts })];
const chain = `${pair.certificatePem}\n${authority.certificatePem}\n`;

/** Creates a folder with a certificate and its key. */
function createFolder(initial: KeyedCertificate = pair) {
  const folder = temporaryDirectory();
  const files = { cert: join(folder, 'fullchain.pem'), key: join(folder, 'privkey.pem') };
  const writeCert = (pem: string) => writeFileSync(files.cert, pem);
  const writeKey = (pem: string) => writeFileSync(files.key, pem);
  const write = ({ certificatePem, keyPem }: KeyedCertificate) => {
    writeCert(certificatePem);
    writeKey(keyPem);
  };
  write(initial);
  return { files, writeCert, writeKey, write };
}

describe('a pair of certificate files', () => {
  it('that match is loaded with the dates and names of its certificate', async () => {
    const loaded = await loadCertificateFiles(createFolder().files);
    expect(loaded).toMatchObject({
      cert: pair.certificatePem,
      key: pair.keyPem,
      notAfter: new X509Certificate(pair.certificatePem).validToDate,
    });
    const names = ['localhost', '127.0.0.1', 'example.org', '127.0.0.2'];
    expect(names.map(loaded.covers)).toEqual([true, true, false, false]);
    expect(() => createSecureContext(loaded)).not.toThrow();
  });

  it('is loaded even when it has expired', async () => {
    const notAfterMs = nowMs - 1000;
    const { files } = createFolder(await authority.issue({ hosts: ['localhost'], notAfterMs }));
    expect((await loadCertificateFiles(files)).notAfter).toEqual(new Date(notAfterMs));
  });

  it.each([
    ['cert', 'EARSHOT_TLS_CERT'],
    ['key', 'EARSHOT_TLS_KEY'],
  ] as const)(
    'is refused when its %s file is missing, with the variable of that file',
    async (name, variable) => {
      const { files } = createFolder();
      rmSync(files[name]);
      await expect(loadCertificateFiles(files)).rejects.toMatchObject({
        code: 'configuration',
        message: `${variable} is ${files[name]}, but there is no such file.`,
      });
    },
  );

  it('is refused with the reason when a file cannot be read', async () => {
    const { files } = createFolder();
    const unreadable = { ...files, key: `${files.key}/..` };
    await expect(loadCertificateFiles(unreadable)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/^EARSHOT_TLS_KEY is .* but .*(E[A-Z]+|file)\.$/),
    });
  });

  const noCertificate = /fullchain\.pem does not contain a PEM certificate\.$/;
  const noKey = /^\S+privkey\.pem does not contain a PEM private key without passphrase\.$/;

  it.each([
    ['text instead of a certificate', { certificatePem: 'nonsense' }, noCertificate],
    ['an empty certificate', { certificatePem: '' }, noCertificate],
    [
      'a truncated certificate',
      { certificatePem: '-----BEGIN CERTIFICATE-----\nMIIB' },
      noCertificate,
    ],
    [
      'certificate and key swapped',
      { certificatePem: pair.keyPem, keyPem: pair.certificatePem },
      /contain/,
    ],
    ['text instead of a key', { keyPem: 'nonsense' }, noKey],
    ['an empty key', { keyPem: '' }, noKey],
    ['a truncated key', { keyPem: pair.keyPem.slice(0, pair.keyPem.length / 2) }, noKey],
    ['a key with a passphrase', { keyPem: encrypted(pair.keyPem) }, noKey],
    [
      'the key of another certificate',
      { keyPem: other.keyPem },
      /does not belong to the certificate/,
    ],
  ])(
    'is refused when it contains %s, without showing the content',
    async (_title, changed, message) => {
      const { files } = createFolder({ ...pair, ...changed });
      await expect(loadCertificateFiles(files)).rejects.toMatchObject({
        code: 'configuration',
        message: expect.stringMatching(message),
      });
    },
  );
});

function encrypted(pem: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  return createPrivateKey(pem).export(options).toString();
}

describe('the check of certificate files', () => {
  const nowUs = nowMs * 1000;

  it('passes when they match each other and the name', async () => {
    const { files } = createFolder();
    for (const host of ['localhost', '127.0.0.1', undefined]) {
      expect(await checkCertificateFiles(files, { host, nowUs })).toEqual([
        {
          check: 'certificate files',
          state: 'pass',
          message: 'Key and certificate match. Valid until 2026-05-31.',
        },
      ]);
    }
  });

  it('fails with the reason', async () => {
    const { files, write, writeKey } = createFolder();
    const find = async (host = 'localhost', now = nowUs) => {
      const [finding] = await checkCertificateFiles(files, { host, nowUs: now });
      return finding;
    };
    const failed = (text: string) => ({ state: 'fail', message: expect.stringContaining(text) });
    const inAMonth = (nowMs + 31 * 86_400_000) * 1000;
    expect(await find('earshot.example.org')).toMatchObject(
      failed('is not valid for the host earshot.example.org'),
    );
    expect(await find('localhost', inAMonth)).toMatchObject(failed('has expired'));
    writeKey(other.keyPem);
    expect(await find()).toMatchObject(failed('does not belong to the certificate'));
    write(await createSelfSigned({ hosts: ['localhost'], now: () => nowMs }));
    expect(await find()).toMatchObject(failed('self-signed'));
    rmSync(files.cert);
    expect(await find()).toMatchObject({
      ...failed('there is no such file'),
      advice: expect.stringContaining('EARSHOT_TLS_CERT'),
    });
  });
});

/** Watches a folder with a pair; reads it only on request. */
async function watchPair() {
  const folder = createFolder();
  const applied: LoadedCertificate[] = [];
  const problems: unknown[] = [];
  const watch = watchCertificate({
    load: () => loadCertificateFiles(folder.files),
    current: await loadCertificateFiles(folder.files),
    intervalMs: 2 ** 30,
    onChange: (loaded) => applied.push(loaded),
    onProblem: (error) => problems.push(error),
  });
  onTestFinished(() => watch.stop());
  const certificates = () => applied.map(({ cert }) => cert);
  return { ...folder, check: watch.check, certificates, problems };
}

describe('the watch of certificate files', () => {
  it('ignores unchanged files, even when they are rewritten', async () => {
    const { write, check, certificates, problems } = await watchPair();
    await check();
    write(pair);
    await check();
    expect([certificates(), problems]).toEqual([[], []]);
  });

  it('applies a new pair once', async () => {
    const { write, check, certificates, problems } = await watchPair();
    write(other);
    await check();
    await check();
    expect([certificates(), problems]).toEqual([[other.certificatePem], []]);
  });

  it.each(['certificate', 'key'])(
    'reports a pair with only a new %s once, keeps the old pair, then applies the complete pair',
    async (first) => {
      const { write, writeKey, writeCert, check, certificates, problems } = await watchPair();
      if (first === 'key') writeKey(other.keyPem);
      else writeCert(other.certificatePem);
      await check();
      await check();
      const refused = [expect.objectContaining({ code: 'configuration' })];
      expect([certificates(), problems]).toEqual([[], refused]);
      write(other);
      await check();
      expect([certificates(), problems]).toEqual([[other.certificatePem], refused]);
    },
  );

  it('applies an earlier pair again, and a chain that is completed later', async () => {
    const { write, writeCert, check, certificates } = await watchPair();
    write(other);
    await check();
    write(pair);
    await check();
    writeCert(chain);
    await check();
    expect(certificates()).toEqual([other.certificatePem, pair.certificatePem, chain]);
  });
});
