/** The certificate files, as the doctor finds them. */
import { describe, expect, it } from 'vitest';
import { createSelfSigned } from '../../src/sandbox/certificate-authority.ts';
import { checkCertificateFiles } from '../../src/tls/certificate.ts';
import { at, createFolder, createPairs, nowMs } from './certificate-folder.ts';

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
