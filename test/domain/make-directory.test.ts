import { mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeDirectory } from '../../src/host/files.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

describe('making a folder', () => {
  it('makes those above it too, for the owner alone, and leaves one that is there', () => {
    const folder = temporaryDirectory();
    mkdirSync(join(folder, 'shared'), { mode: 0o755 });
    makeDirectory(join(folder, 'shared', 'a', 'b'));
    makeDirectory(join(folder, 'shared', 'a', 'b'));
    const modes = ['shared', 'shared/a', 'shared/a/b'].map(
      (path) => statSync(join(folder, path)).mode & 0o777,
    );
    expect(modes).toEqual([0o755, 0o700, 0o700]);
  });

  it('says what is in the way', () => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, 'file'), '');
    symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
    const codeOf = (path: string) => {
      try {
        makeDirectory(join(folder, path));
      } catch (error) {
        return error instanceof Error && 'code' in error ? error.code : error;
      }
      return 'none';
    };
    expect(codeOf('file')).toBe('EEXIST');
    expect(codeOf('link')).toBe('EEXIST');
    expect(['EEXIST', 'ENOTDIR']).toContain(codeOf('file/below'));
  });

  // Node's own does not return from there.
  it.runIf(process.platform === 'linux')('does not try for ever where none can be made', () => {
    expect(() => makeDirectory('/proc/earshot/data')).toThrow('ENOENT');
  });
});
