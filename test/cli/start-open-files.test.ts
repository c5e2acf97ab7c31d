/** What `start` says of files that others may read or change. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { startCommand } from './fake-io.ts';

it('start warns in its log of a secret that every user may read, and of a file that they may change', async () => {
  const workingDir = temporaryDirectory();
  const password = join(workingDir, 'password');
  const config = join(workingDir, 'earshot.config.ts');
  writeFileSync(password, 'hunter2-not-to-be-told\n');
  writeFileSync(config, 'export default { subscriptions: {} };\n');
  chmodSync(password, 0o644);
  chmodSync(config, 0o666);
  const starting = startCommand(['start'], {
    workingDir,
    env: {
      EARSHOT_TLS: 'off',
      EARSHOT_LISTEN: '127.0.0.1:0',
      EARSHOT_CONSOLE_LISTEN: 'off',
      EARSHOT_DATA_DIR: join(workingDir, 'data'),
      EARSHOT_ENDPOINT_USERNAME: 'catalogue',
      EARSHOT_ENDPOINT_PASSWORD_FILE: password,
    },
  });
  starting.stop();
  const { err } = await starting.ended;
  const lines = err
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const told = lines.filter(({ msg }) => msg.startsWith('Every user of this machine'));
  expect(told).toMatchObject([
    {
      level: 'warn',
      msg: `Every user of this machine may read or change ${password}.`,
      advice: `Run: chmod o= ${password}`,
    },
    {
      level: 'warn',
      msg: `Every user of this machine may change ${config}.`,
      advice: `Run: chmod o-w ${config}`,
    },
  ]);
  expect(err).not.toContain('hunter2');
});
