/** Commands use the trial in a folder below if the working folder has no settings. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAcquireLock } from '../../src/store/engine/locks.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { expectEnd, expectRefusal, runCommand } from './fake-io.ts';
import { withStore } from './filled-store.ts';

/** Creates a folder with trials of these names. */
function folderWith(...trials: string[]) {
  const workingDir = temporaryDirectory();
  for (const name of trials) {
    const folder = join(workingDir, name);
    mkdirSync(join(folder, 'data'), { recursive: true });
    const text = `# Written by \`earshot setup --sandbox\`, which continues this trial.\nEARSHOT_DATA_DIR=${join(folder, 'data')}\n`;
    writeFileSync(join(folder, '.env'), text);
  }
  const env = { earshot_called_as: './earshot' };
  const run = (argv: string, more: Record<string, string> = {}) =>
    runCommand(argv, { workingDir, env: { ...env, ...more } });
  return { workingDir, run };
}

describe.each(['status', 'doctor'])('%s', (command) => {
  const sandbox = '`./earshot setup --sandbox';

  it('first names setup in a folder that is not set up', async () => {
    const { err } = await folderWith().run(command);
    expect(err).toMatch(
      /^This folder is not set up\. To set up a receiver: `\.\/earshot setup`\. /,
    );
    expect(err.split(sandbox)).toHaveLength(2);
  });

  it('first names setup while stored answers are unfinished', async () => {
    const { run, workingDir } = folderWith();
    mkdirSync(join(workingDir, 'data'));
    writeFileSync(join(workingDir, 'data/setup.json'), '{}');
    const env = { EARSHOT_DATA_DIR: join(workingDir, 'data') };
    const { err } = await run(command, env);
    expect(err).toMatch(/^Setup is not finished\. To continue: `\.\/earshot setup`\.\n/);
  });

  it.each([
    ['sandbox-trial', `${sandbox}\``],
    ['trial-2', `${sandbox} --dir trial-2\``],
  ])('says that the trial in %s is stopped, until it runs', async (name, continued) => {
    const { run, workingDir } = folderWith(name);
    const stopped = `The trial is stopped. To continue the trial: ${continued}.\n`;
    expect((await run(command)).err).toContain(`Using the trial in ./${name}.\n${stopped}`);
    const release = await createAcquireLock(join(workingDir, name, 'data'))('receiver', {
      waitMs: 0,
    });
    onTestFinished(release);
    expect((await run(command)).err).not.toContain('stopped');
  });
});

it('status says how to continue a stopped trial instead of starting its receiver alone', async () => {
  const { run, workingDir } = folderWith('sandbox-trial');
  await withStore(join(workingDir, 'sandbox-trial/data'), async () => undefined);
  const { out } = await run('status');
  expect(out).toContain('Next: To continue the trial: `./earshot setup --sandbox`.');
  expect(out).not.toContain('earshot start');
});

describe('a command in a folder without settings', () => {
  it('uses the trial in the folder below, and prints its name', async () => {
    const { run, workingDir } = folderWith('sandbox-trial');
    const { out } = await expectEnd(
      run('admin config --json'),
      2,
      'Using the trial in ./sandbox-trial.\n',
    );
    const { dataDir, envFile, settings } = JSON.parse(out);
    expect(dataDir).toBe(join(workingDir, 'sandbox-trial/data'));
    expect(envFile).toBe(join(workingDir, 'sandbox-trial/.env'));
    const source = settings.find(
      ({ name }: { name: string }) => name === 'EARSHOT_DATA_DIR',
    ).source;
    expect(source).toBe('.env');
  });

  it('prefers the trial that runs, then the default one', async () => {
    const { run, workingDir } = folderWith('a-trial', 'sandbox-trial', 'trial-2');
    expect((await run('admin config')).err).toContain('Using the trial in ./sandbox-trial.');
    writeFileSync(join(workingDir, 'trial-2/data/receiver.json'), '');
    expect((await run('admin config')).err).toContain('Using the trial in ./trial-2.');
  });

  it.each([
    ['a .env', '.env'],
    ['a configuration', 'earshot.config.ts'],
    ['a data directory', 'data'],
  ])('uses its own settings if the folder has %s, and status names the trial', async (_, file) => {
    const { run, workingDir } = folderWith('sandbox-trial');
    writeFileSync(join(workingDir, file), '');
    expect((await run('admin config')).err).not.toContain('trial');
    const { err } = await run('status');
    expect(err).toContain(
      'A trial is in ./sandbox-trial. Its status: cd sandbox-trial && ../earshot status\n',
    );
  });

  it('does not use a trial with a variable or --data-dir', async () => {
    const { run, workingDir } = folderWith('sandbox-trial');
    expect((await run('admin config', { EARSHOT_INDEX: 'off' })).err).not.toContain('trial');
    expect((await run(`config --data-dir ${workingDir}`)).err).not.toContain('trial');
  });

  it('does not start with the settings of a trial, and never sets up with them', async () => {
    const { run } = folderWith('trial-2');
    const err = await expectRefusal(run('start'), 'the trial in ./trial-2');
    expect(err).toContain('`./earshot setup --sandbox --dir trial-2`');
    expect(err).toContain('`./earshot setup`');
    expect((await run('setup --dry-run')).err).not.toContain('Using the trial');
  });
});
