/** The watch over certificate files: a whole new pair is taken, anything else leaves the old one. */
import { rmSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { KeyedCertificate } from '../../src/sandbox/certificate-authority.ts';
import {
  type LoadedCertificate,
  loadCertificateFiles,
  watchCertificateFiles,
} from '../../src/tls/certificate.ts';
import { at, createFolder, createPairs } from './certificate-folder.ts';

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
