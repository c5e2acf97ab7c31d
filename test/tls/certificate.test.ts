/** Certificate files: what loads, and what is said of those that do not. */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
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
  watchCertificateFiles,
} from '../../src/tls/certificate.ts';

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
      message: `${variable} names ${folder.files[name]}, but there is no such file.`,
    });
  });

  it('is refused with the reason when a file cannot be read', async () => {
    const { pair } = await createPairs(1);
    const folder = createFolder();
    folder.write(pair);
    const files = { ...folder.files, key: `${folder.files.key}/..` };
    await expect(loadCertificateFiles(files)).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringMatching(/^EARSHOT_TLS_KEY names .* cannot be read \(E[A-Z]+\)\.$/),
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
      message: `${folder.files.cert} does not hold a PEM certificate.`,
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
      message: `${folder.files.key} does not hold a PEM private key without passphrase.`,
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
      message: expect.stringContaining('does not belong to the certificate'),
    });
  });
});

function encrypted(pem: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  return createPrivateKey(pem).export(options).toString();
}

const nowMs = Date.UTC(2026, 4, 1, 12);

/** Where the files of a test are; removed at its end. */
function createFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-tls-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = { cert: join(folder, 'fullchain.pem'), key: join(folder, 'privkey.pem') };
  return {
    files,
    writeCert: (pem: string) => writeFileSync(files.cert, pem),
    writeKey: (pem: string) => writeFileSync(files.key, pem),
    write(pair: KeyedCertificate) {
      writeFileSync(files.cert, pair.certificatePem);
      writeFileSync(files.key, pair.keyPem);
    },
  };
}

/** An authority and as many certificates of it as asked for. */
async function createPairs(count: number) {
  const authority = await createCertificateAuthority({ now: () => nowMs });
  const hosts = ['localhost', '127.0.0.1'];
  const pairs = await Promise.all(Array.from({ length: count }, () => authority.issue({ hosts })));
  return { authority, pairs, pair: at(pairs, 0) };
}

/** The item at an index that is known to be there. */
function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new RangeError(`There is no item ${index}.`);
  return item;
}

const nowUs = () => nowMs * 1000;

describe('certificate files', () => {
  it('pass when they fit together and to the name', async () => {
    const { files, write } = createFolder();
    write((await createPairs(1)).pair);
    for (const host of ['localhost', '127.0.0.1', undefined]) {
      expect(await checkCertificateFiles({ files, host, nowUs })).toEqual([
        {
          check: 'certificate files',
          state: 'pass',
          message: 'They fit together; the certificate ends on 2026-05-31.',
        },
      ]);
    }
  });

  it('fail with the reason', async () => {
    const { files, write, writeKey } = createFolder();
    const find = async (host: string | undefined, now = nowUs) =>
      at(await checkCertificateFiles({ files, host, nowUs: now }), 0);
    expect(await find('localhost')).toMatchObject({
      state: 'fail',
      message: expect.stringContaining('there is no such file'),
      advice: expect.stringContaining('EARSHOT_TLS_CERT'),
    });
    const { pairs, pair } = await createPairs(2);
    write(pair);
    const elsewhere = await find('earshot.example.org');
    expect(elsewhere.message).toContain('is not for earshot.example.org');
    expect((await find('localhost', () => (nowMs + 31 * 86_400_000) * 1000)).message).toContain(
      'has expired',
    );
    writeKey(at(pairs, 1).keyPem);
    expect((await find('localhost')).message).toContain('does not belong to the certificate');
    write(await createSelfSigned({ hosts: ['localhost'], now: () => nowMs }));
    const own = await find('localhost');
    expect(own).toMatchObject({ state: 'fail', message: expect.stringContaining('self-signed') });
  });
});

/** Watches a folder that holds a pair; looks only when told to. */
async function watchPair(pair: KeyedCertificate) {
  const folder = createFolder();
  folder.write(pair);
  const taken: LoadedCertificate[] = [];
  const problems: unknown[] = [];
  const state: { failWith: Error | undefined } = { failWith: undefined };
  const watch = watchCertificateFiles({
    files: folder.files,
    current: await loadCertificateFiles(folder.files),
    intervalMs: 2 ** 30,
    onChange: (loaded) => {
      if (state.failWith !== undefined) throw state.failWith;
      taken.push(loaded);
    },
    onProblem: (error) => problems.push(error),
  });
  onTestFinished(() => watch.stop());
  return { folder, watch, taken, problems, state };
}

describe('the watch', () => {
  it('does nothing while the files are the same, rewritten or not', async () => {
    const { pair } = await createPairs(1);
    const { folder, watch, taken, problems } = await watchPair(pair);
    await watch.check();
    folder.write(pair);
    await watch.check();
    expect({ taken, problems }).toEqual({ taken: [], problems: [] });
  });

  it('takes a new pair, once', async () => {
    const { pairs } = await createPairs(2);
    const { folder, watch, taken, problems } = await watchPair(at(pairs, 0));
    folder.write(at(pairs, 1));
    await watch.check();
    await watch.check();
    expect(taken.map(({ key }) => key)).toEqual([at(pairs, 1).keyPem]);
    expect(problems).toEqual([]);
  });

  it.each(['certificate', 'key'])(
    'reports a pair of which only the %s is new once, keeps the old one, then takes the whole',
    async (first) => {
      const { pairs } = await createPairs(2);
      const next = at(pairs, 1);
      const { folder, watch, taken, problems } = await watchPair(at(pairs, 0));
      if (first === 'key') folder.writeKey(next.keyPem);
      else folder.writeCert(next.certificatePem);
      await watch.check();
      await watch.check();
      expect(taken).toEqual([]);
      expect(problems).toEqual([expect.objectContaining({ code: 'configuration' })]);
      folder.write(next);
      await watch.check();
      expect(taken.map(({ cert }) => cert)).toEqual([next.certificatePem]);
      expect(problems).toHaveLength(1);
    },
  );

  it('reports each new problem, and one that comes again after a good look', async () => {
    const { pairs } = await createPairs(2);
    const { folder, watch, taken, problems } = await watchPair(at(pairs, 0));
    folder.writeCert('nonsense');
    await watch.check();
    rmSync(folder.files.key);
    await watch.check();
    expect(problems).toHaveLength(2);
    folder.write(at(pairs, 0));
    await watch.check();
    rmSync(folder.files.key);
    await watch.check();
    await watch.check();
    expect(problems).toHaveLength(3);
    expect(taken).toEqual([]);
  });

  it('goes back to an earlier pair when that is put back', async () => {
    const { pairs } = await createPairs(2);
    const { folder, watch, taken } = await watchPair(at(pairs, 0));
    for (const index of [1, 0]) {
      folder.write(at(pairs, index));
      await watch.check();
    }
    expect(taken.map(({ key }) => key)).toEqual([at(pairs, 1).keyPem, at(pairs, 0).keyPem]);
  });

  it('takes a chain that is completed behind the same certificate', async () => {
    const { authority, pair } = await createPairs(1);
    const { folder, watch, taken } = await watchPair(pair);
    const chain = `${pair.certificatePem}\n${authority.certificatePem}\n`;
    folder.writeCert(chain);
    await watch.check();
    expect(taken.map(({ cert }) => cert)).toEqual([chain]);
  });

  it('offers a pair again that could not be put into use', async () => {
    const { pairs } = await createPairs(2);
    const { folder, watch, taken, problems, state } = await watchPair(at(pairs, 0));
    folder.write(at(pairs, 1));
    state.failWith = new Error('the listener does not like it');
    await watch.check();
    expect(problems).toEqual([state.failWith]);
    state.failWith = undefined;
    await watch.check();
    expect(taken.map(({ key }) => key)).toEqual([at(pairs, 1).keyPem]);
  });
});
