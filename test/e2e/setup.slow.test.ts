/** `earshot setup` on a terminal. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

it.skipIf(!existsSync('/usr/bin/script'))(
  'a password is not shown on a terminal (needs script of util-linux)',
  async () => {
    const cwd = temporaryDirectory();
    const program = join(import.meta.dirname, '../../scripts/earshot.js');
    const shown = `${process.execPath} ${program} setup --dry-run --yes --pull --collection S2`;
    const child = spawn('script', ['-qec', shown, '/dev/null'], {
      cwd,
      env: bareEnvironment({ EARSHOT_ACCOUNT_USERNAME: 'me' }),
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const output = printedBy(child.stdout);
    await expect.poll(output).toContain('Password of the catalogue account (not shown): ');
    child.stdin.write('hunter2-of-mine\n');
    await once(child, 'exit');
    expect(output()).toContain('EARSHOT_ACCOUNT_PASSWORD=********');
    expect(output()).not.toContain('hunter2');
  },
);
