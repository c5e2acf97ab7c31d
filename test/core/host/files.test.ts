/** Folders and files with secrets: permissions, and atomic creation. */

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  makeDirectory,
  readOwnerOnly,
  syncFolder,
  writeOwnerOnly,
} from '../../../src/core/host/files.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

it('creating a folder creates its parents too, for the owner alone, and leaves an existing one unchanged', () => {
  const folder = temporaryDirectory();
  mkdirSync(join(folder, 'shared'), { mode: 0o755 });
  makeDirectory(join(folder, 'shared', 'a', 'b'));
  makeDirectory(join(folder, 'shared', 'a', 'b'));
  const modes = ['shared', 'shared/a', 'shared/a/b'].map(
    (path) => statSync(join(folder, path)).mode & 0o777,
  );
  expect(modes).toEqual([0o755, 0o700, 0o700]);
});

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe('a file with a secret', () => {
  it('is so too with an open umask, and when it replaces an open file', () => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, 'open'), 'old');
    chmodSync(join(folder, 'open'), 0o666);
    const module = join(import.meta.dirname, '../../../src/core/host/files.ts');
    const script = `import { createOwnerOnly, writeOwnerOnly } from ${JSON.stringify(module)};
      process.umask(0);
      createOwnerOnly('database');
      await writeOwnerOnly('new/secret', 'x');
      await writeOwnerOnly('open', new Uint8Array([121]));`;
    const args = ['--input-type=module', '--eval', script];
    const ran = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
    expect(ran).toMatchObject({ status: 0, stderr: '' });
    const modes = ['database', 'new', 'new/secret', 'open'].map((name) =>
      modeOf(join(folder, name)),
    );
    expect(modes).toEqual([0o600, 0o700, 0o600, 0o600]);
    expect(readOwnerOnly(join(folder, 'open'))).toBe('y');
  });

  it.each([0o640, 0o602])('is refused with the mode %o', async (mode) => {
    const path = join(temporaryDirectory(), 'secret');
    await writeOwnerOnly(path, 'shown to nobody');
    chmodSync(path, mode);
    expect(() => readOwnerOnly(path)).toThrow(
      expect.objectContaining({
        code: 'configuration',
        text: `${path} contains a secret, and other users can read or change the file. Run: chmod 600 ${path}`,
      }),
    );
  });

  it('behind a link is checked at the end of the link', async () => {
    const folder = temporaryDirectory();
    await writeOwnerOnly(join(folder, 'secret'), 'x');
    symlinkSync('secret', join(folder, 'link'));
    expect(readOwnerOnly(join(folder, 'link'))).toBe('x');
    chmodSync(join(folder, 'secret'), 0o644);
    expect(() => readOwnerOnly(join(folder, 'link'))).toThrow('other users can read');
  });

  it('is null when there is none, and a pipe blocks nobody', () => {
    const folder = temporaryDirectory();
    expect(readOwnerOnly(join(folder, 'none'))).toBeNull();
    spawnSync('mkfifo', ['-m', '600', join(folder, 'pipe')]);
    expect(statSync(join(folder, 'pipe')).isFIFO()).toBe(true);
    expect(readOwnerOnly(join(folder, 'pipe'))).toBe('');
  });

  it('keeps its content when a new one cannot be written, and leaves no temporary file', async () => {
    const folder = temporaryDirectory();
    const path = join(folder, 'secret');
    mkdirSync(path);
    await expect(writeOwnerOnly(path, 'x')).rejects.toThrow('EISDIR');
    expect(readdirSync(folder)).toEqual(['secret']);
  });
});

describe.skipIf(process.getuid?.() !== 0)('written by root (needs root)', () => {
  it('belongs to the owner of its folder when it is new, otherwise keeps its owner', async () => {
    const folder = temporaryDirectory();
    spawnSync('chown', ['1234:1234', folder]);
    const path = join(folder, 'secret');
    await writeOwnerOnly(path, 'x');
    expect(statSync(path)).toMatchObject({ uid: 1234, gid: 1234 });
    spawnSync('chown', ['4321:4321', path]);
    await writeOwnerOnly(path, 'y');
    expect(statSync(path)).toMatchObject({ uid: 4321, gid: 4321 });
  });
});

it.each([
  ['EIO', false],
  ['EINVAL', true],
])('a folder whose sync fails with %s: resolves %s', async (code, resolves) => {
  const folder = temporaryDirectory();
  const handle = await open(folder);
  const error = Object.assign(new Error(code), { code });
  const sync = vi.spyOn(Object.getPrototypeOf(handle), 'sync').mockRejectedValue(error);
  onTestFinished(async () => {
    sync.mockRestore();
    await handle.close();
  });
  const synced = syncFolder(folder).then(
    () => true,
    () => false,
  );
  expect(await synced).toBe(resolves);
});
