/** `status` and `doctor` first report that a folder is not set up. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

describe.each(['status', 'doctor'])('%s', (command) => {
  const run = (workingDir: string, env: Record<string, string> = {}) =>
    runCommand(command, { workingDir, env: { earshot_called_as: './earshot', ...env } });

  it('first names setup and the demo in a folder that is not set up', async () => {
    const { err } = await run(temporaryDirectory());
    expect(err).toMatch(
      /^This folder is not set up\. To set up a receiver: `\.\/earshot setup`\. .*`\.\/earshot demo`\.\n/,
    );
  });

  it('first names setup while stored answers are unfinished', async () => {
    const data = join(temporaryDirectory(), 'data');
    mkdirSync(data);
    writeFileSync(join(data, 'setup.json'), '{}');
    const { err } = await run(join(data, '..'), { EARSHOT_DATA_DIR: data });
    expect(err).toMatch(/^Setup is not finished\. To continue: `\.\/earshot setup`\.\n/);
  });

  it('prints no note with settings', async () => {
    const folder = temporaryDirectory();
    writeFileSync(join(folder, '.env'), '');
    expect((await run(folder)).err).not.toMatch(/not set up|not finished/);
  });
});
