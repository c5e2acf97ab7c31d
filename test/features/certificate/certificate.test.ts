/** Certificate files: loading, error messages, and reloading of changed files. */

import { createPrivateKey, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { allFaults } from '../../../src/core/terms/faults.ts';
import { loadCertificateFiles } from '../../../src/features/certificate/certificate.ts';
import { checkCertificate } from '../../../src/features/certificate/status.ts';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../../src/sandbox/certificate-authority.ts';
import { createSelfSigned } from '../../admin/endpoint/certificate-chain.ts';
import { refusalOf } from '../../core/config/environment.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const nowMs = Date.UTC(2026, 4, 1, 12);
const nowUs = nowMs * 1000;
const authority = await createCertificateAuthority({ now: () => nowMs });
const hosts = ['localhost', '127.0.0.1'];
const [pair, other] = [await authority.issue({ hosts }), await authority.issue({ hosts })];
const expired = await authority.issue({ hosts, notAfterMs: nowMs - 1000 });

/** Creates a folder with a certificate and its key. */
function createFiles({ certificatePem, keyPem }: KeyedCertificate = pair) {
  const folder = temporaryDirectory();
  const files = { cert: join(folder, 'fullchain.pem'), key: join(folder, 'privkey.pem') };
  writeFileSync(files.cert, certificatePem);
  writeFileSync(files.key, keyPem);
  return files;
}

describe('a pair of certificate files', () => {
  it('that match is loaded with the dates and names of its certificate, also an expired one', () => {
    for (const given of [pair, expired]) {
      const { certificatePem: cert, keyPem: key } = given;
      const loaded = loadCertificateFiles(createFiles(given));
      const notAfterUs = new X509Certificate(cert).validToDate.getTime() * 1000;
      expect(loaded).toMatchObject({ cert, key, notAfterUs, names: hosts });
      const names = [...hosts, 'example.org', '127.0.0.2'];
      expect(names.map(loaded.covers)).toEqual([true, true, false, false]);
    }
  });

  const noCertificate = /fullchain\.pem does not contain a PEM certificate\.$/;
  const noKey = /^\S+privkey\.pem does not contain a PEM private key without passphrase\.$/;
  const swapped = { certificatePem: pair.keyPem, keyPem: pair.certificatePem };

  it('is refused when a file is missing, with the variable of that file', () => {
    const files = { ...createFiles(), key: '/missing.pem' };
    const { message } = refusalOf(() => loadCertificateFiles(files));
    expect(message).toMatch(/^EARSHOT_TLS_KEY is \/missing\.pem: .*\(ENOENT\)\.$/);
  });

  it.each([
    ['a cut certificate', { certificatePem: pair.certificatePem.slice(0, 99) }, noCertificate],
    ['certificate and key swapped', swapped, noCertificate],
    ['text instead of a key', { keyPem: 'nonsense' }, noKey],
    ['a key with a passphrase', { keyPem: encrypted(pair.keyPem) }, noKey],
    ['another key', { keyPem: other.keyPem }, /does not belong to the certificate/],
  ])('is refused when it contains %s, without showing the content', (_title, changed, message) => {
    const files = createFiles({ ...pair, ...changed });
    const refusal = refusalOf(() => loadCertificateFiles(files));
    expect(refusal).toMatchObject({ code: 'configuration' });
    expect(refusal.message).toMatch(message);
  });
});

function encrypted(pem: string): string {
  const options = { type: 'pkcs8', format: 'pem', cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  return createPrivateKey(pem).export(options).toString();
}

const find = (given: KeyedCertificate, host: string | undefined) =>
  checkCertificate({ kind: 'files', ...createFiles(given) }, { host, dataDir: '', nowUs });

it('the check of certificate files is ok when they match each other and the name, and fails with the reason', async () => {
  const text = 'Key and certificate match. Valid until 2026-05-31.';
  for (const host of [...hosts, undefined]) {
    expect(find(pair, host)).toMatchObject({ level: 'ok', text });
  }
  const own = await createSelfSigned();
  for (const [given, host, fault] of [
    [pair, 'earshot.example.org', 'certificate-name'],
    [expired, 'localhost', 'certificate-expired'],
    [own, 'localhost', 'certificate-untrusted'],
  ] as const) {
    const clause = expect.stringContaining(`fullchain.pem: ${faultCalled(fault)?.clause}`);
    const expected = { level: 'critical', text: clause, code: 'configuration' };
    expect(find(given, host)).toMatchObject(expected);
  }
});

const faultCalled = (code: string) => allFaults.find((one) => one.code === code);
