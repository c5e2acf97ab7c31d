/** Files with a user's secrets, as the doctor checks them. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { checkSecretFiles } from '../../src/config/secret-file-checks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

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
    };
    expect(await checkSecretFiles({ env, workingDir: folder })).toMatchObject([
      { check: 'secret files', state: 'pass', message: expect.stringContaining('3 secret files') },
    ]);
  });

  it.each([
    ['EARSHOT_ACCOUNT_PASSWORD_FILE', 'file'],
    ['EARSHOT_ACCOUNT_TOTP_FILE', 'file'],
    ['EARSHOT_ACCESS_TOKEN_FILE', 'file'],
    ['EARSHOT_TLS_KEY', 'file'],
    ['EARSHOT_LOG_LEVEL', '.env'],
  ])('give a warning when everybody may read them: %s', async (variable, name) => {
    const folder = folderWith({ [name]: 0o644 });
    const path = join(folder, name);
    const findings = await checkSecretFiles({ env: { [variable]: path }, workingDir: folder });
    expect(findings).toEqual([
      {
        check: 'secret files',
        state: 'warn',
        message: `Every user of this machine can read or change ${path}.`,
        advice: `Run: chmod o= ${path}`,
      },
    ]);
  });

  it.each([
    ['EARSHOT_BACKUP_DIR', 'file'],
    ['EARSHOT_TLS_CERT', 'file'],
    ['EARSHOT_ACME_CA', 'file'],
    ['EARSHOT_PROBE_CA', 'file'],
    ['EARSHOT_LOG_LEVEL', 'earshot.config.ts'],
  ])('without secrets may be read by everybody, but not changed: %s', async (variable, name) => {
    const folder = folderWith({ [name]: 0o644 });
    const path = join(folder, name);
    const files = { env: { [variable]: path }, workingDir: folder };
    expect(await checkSecretFiles(files)).toEqual([]);
    chmodSync(path, 0o646);
    expect(await checkSecretFiles(files)).toEqual([
      {
        check: 'secret files',
        state: 'warn',
        message: `Every user of this machine can change ${path}.`,
        advice: `Run: chmod o-w ${path}`,
      },
    ]);
  });

  it('are not mentioned when there are none, nor when one is missing', async () => {
    const workingDir = folderWith({ certificate: 0o644 });
    const env = {
      EARSHOT_TLS_CERT: join(workingDir, 'certificate'),
      EARSHOT_TLS_KEY: join(workingDir, 'missing'),
    };
    expect(await checkSecretFiles({ env, workingDir })).toEqual([]);
  });
});
