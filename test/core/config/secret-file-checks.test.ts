/** Files with a user's secrets, as the doctor checks them. */

import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkSecretFiles } from '../../../src/core/doctor/steps.ts';
import { settings } from '../../helpers/settings.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const levels = async (options: Parameters<typeof checkSecretFiles>[0]) =>
  (await checkSecretFiles(options)).map(({ level }) => level);

function folderWith(files: Record<string, number>) {
  const folder = temporaryDirectory();
  for (const [name, mode] of Object.entries(files)) {
    writeFileSync(join(folder, name), 'secret');
    chmodSync(join(folder, name), mode);
  }
  return folder;
}

describe('files with secrets', () => {
  it('pass when only the owner or a group may read them', async () => {
    const folder = folderWith({ password: 0o600, key: 0o640, '.env': 0o600 });
    const env = {
      EARSHOT_ENDPOINT_PASSWORD_FILE: join(folder, 'password'),
      EARSHOT_TLS_KEY: join(folder, 'key'),
      EARSHOT_TLS_CERT: join(folder, 'missing'),
    };
    expect(await levels({ settings, env, workingDir: folder })).toEqual(['ok']);
  });

  it.each([
    ['EARSHOT_ACCOUNT_PASSWORD_FILE', 'file'],
    ['EARSHOT_TLS_KEY', 'file'],
    ['EARSHOT_LOG_LEVEL', '.env'],
  ])('give a warning when everybody may read them: %s', async (variable, name) => {
    const folder = folderWith({ [name]: 0o644 });
    const path = join(folder, name);
    expect(
      await checkSecretFiles({ settings, env: { [variable]: path }, workingDir: folder }),
    ).toEqual([
      {
        check: 'secret files',
        level: 'warning',
        text: `Other users can access ${path}.`,
        evidence: [],
        nextStep: `Run: chmod o= ${path}`,
      },
    ]);
  });

  it.each([
    ['EARSHOT_BACKUP_DIR', 'file'],
    ['EARSHOT_TLS_CERT', 'file'],
    ['EARSHOT_LOG_LEVEL', 'earshot.config.ts'],
  ])('without secrets may be read by everybody, but not changed: %s', async (variable, name) => {
    const folder = folderWith({ [name]: 0o644 });
    const path = join(folder, name);
    const files = { settings, env: { [variable]: path }, workingDir: folder };
    expect(await levels(files)).toEqual(['ok']);
    chmodSync(path, 0o646);
    expect(await checkSecretFiles(files)).toMatchObject([
      { level: 'critical', nextStep: `Run: chmod o-w ${path}` },
    ]);
  });

  it.each([
    [0o600, 'ok', 'ok'],
    [0o640, 'critical', 'warning'],
    [0o604, 'critical', 'warning'],
    [0o646, 'critical', 'critical'],
  ])(
    'in the data directory, with the mode %o: a secret %s, the database %s',
    async (mode, ...expected) => {
      const workingDir = folderWith({ file: mode });
      const file = [join(workingDir, 'file')];
      const options = { settings, env: {}, workingDir };
      const found = [
        await checkSecretFiles({ ...options, secretFiles: file }),
        await checkSecretFiles({ ...options, databaseFiles: file }),
      ];
      expect(found.map(([first]) => first?.level)).toEqual(expected);
      if (mode !== 0o600) expect(found[0]?.[0]?.nextStep).toBe(`Run: chmod 600 ${file}`);
    },
  );
});
