/** A folder with certificate files, and pairs to put into it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../src/sandbox/certificate-authority.ts';

export const nowMs = Date.UTC(2026, 4, 1, 12);

/** Where the files of a test are; removed at its end. */
export function createFolder() {
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
export async function createPairs(count: number) {
  const authority = await createCertificateAuthority({ now: () => nowMs });
  const hosts = ['localhost', '127.0.0.1'];
  const pairs = await Promise.all(Array.from({ length: count }, () => authority.issue({ hosts })));
  return { authority, pairs, pair: at(pairs, 0) };
}

/** The item at an index that is known to be there. */
export function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new RangeError(`There is no item ${index}.`);
  return item;
}
