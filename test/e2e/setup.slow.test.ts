/** `earshot setup` as a user runs it: real processes, a real folder, real HTTPS. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createDemoCertificate } from '../../src/features/demo/settings.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { freePorts } from '../helpers/free-ports.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const program = join(import.meta.dirname, '../../scripts/earshot.js');
const account = { username: 'me@example.org', password: 'the password of my #1 account' };

/** Starts the program; `says` resolves when its output contains the text. */
function run(argv: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [program, ...argv], { cwd, env: bareEnvironment(env) });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { child, ...watch(child) };
}

function watch(child: ChildProcess) {
  let output = '';
  const changed = new EventTarget();
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      changed.dispatchEvent(new Event('text'));
    });
  }
  const exit = once(child, 'exit');
  const says = async (text: string) => {
    const ended = exit.then(([code]) => {
      throw new Error(`It ended with ${code} before it said "${text}":\n${output}`);
    });
    while (!output.includes(text)) await Promise.race([once(changed, 'text'), ended]);
    ended.catch(() => undefined);
  };
  return { says, exit, output: () => output };
}

/** Flags of a receiver with another address. */
const otherFlags = [
  ...['setup', '--host', 'earshot.example.org', '--tls', 'off', '--listen', '127.0.0.1:9'],
  ...['--collection', 'S2'],
];

/** Runs a command to its end with only the settings of the folder. */
const inFolder = (argv: readonly string[], cwd: string) =>
  spawnCommand(argv, { env: {}, cwd }).ended;

/** Starts a sandbox as the catalogue, and returns the settings for a setup with it. */
async function openContext() {
  const folder = temporaryDirectory();
  const certificate = await createDemoCertificate(folder, Date.now);
  const sandbox = await startSandbox({
    ...{ account, now: Date.now, ratePerSecond: 20 },
    trustedCaPems: [certificate.authorityPem],
  });
  onTestFinished(() => sandbox.close());
  const [listen = 0, consoleListen = 0] = await freePorts(2);
  const passwordFile = join(folder, 'account-password');
  writeFileSync(passwordFile, `${account.password}\n`, { mode: 0o600 });
  const { cert, key, ca } = certificate.files;
  const env = {
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_PROBE_CA: ca,
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consoleListen}`,
  };
  const flags = [
    ...['--host', `localhost:${listen}`, '--listen', `127.0.0.1:${listen}`],
    ...['--tls', 'files', '--cert', cert, '--key', key],
    ...['--account-username', account.username, '--account-password-file', passwordFile],
    ...['--collection', 'S2', '--subscription', 'alps', '--yes'],
  ];
  return { folder, sandbox, env, flags, passwordFile, envFile: join(folder, '.env') };
}

describe('setup with flags', () => {
  it('registers, and writes a .env with which start receives notifications', {
    timeout: 120_000,
  }, async () => {
    const { folder, sandbox, env, flags, envFile } = await openContext();
    writeFileSync(envFile, '# mine\nOTHER=kept\nEARSHOT_LISTEN=127.0.0.1:1\n', { mode: 0o644 });
    const refused = await spawnCommand(['setup', ...flags], { env, cwd: folder }).ended;
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain('Add --force');
    const argv = ['setup', ...flags, '--force', '--no-stay'];
    const done = await spawnCommand(argv, { env, cwd: folder }).ended;
    expect(done).toMatchObject({ code: 0 });
    expect(done.err).toContain('Start the receiver: `earshot start`');
    const text = readFileSync(envFile, 'utf8');
    expect(text).toMatch(/^# mine\nOTHER=kept\nEARSHOT_/);
    expect(text).not.toContain('127.0.0.1:1\n');
    expect(text).toContain(`EARSHOT_CATALOGUE_URL=${sandbox.catalogueUrl}\n`);
    expect(statSync(envFile).mode & 0o777).toBe(0o600);
    for (const output of [text, done.out, done.err]) expect(output).not.toContain(account.password);
    expect(sandbox.subscriptions()).toMatchObject([{ status: 'running', events: ['created'] }]);
    const started = run(['start'], folder);
    await started.says('ready to receive notifications');
    const tail = run(['tail', '--subscription', 'alps'], folder);
    await Promise.race([tail.says('S2'), started.exit]);
    expect(tail.output()).toContain('created');
  });

  it('keeps running after the registration as the only receiver, and ends with Ctrl-C', {
    timeout: 120_000,
  }, async () => {
    const { folder, env, flags, envFile } = await openContext();
    const setup = run(['setup', ...flags], folder, env);
    await setup.says('first notification stored: created S2');
    const pid = String(setup.child.pid);
    const written = readFileSync(envFile, 'utf8');
    for (const argv of [['start'], [...otherFlags, '--yes', '--force']]) {
      const refused = await inFolder(argv, folder);
      expect(refused, refused.err).toMatchObject({ code: 1, out: '' });
      expect(refused.err).toContain(`process ${pid}, https://localhost:`);
      expect(refused.err).toContain(`kill ${pid}`);
      expect(refused.err).toContain('Nothing was changed.');
    }
    expect(readFileSync(envFile, 'utf8')).toBe(written);
    const status = await inFolder(['status'], folder);
    expect(status.out).toMatch(
      new RegExp(`accepting notifications, up for .* \\(process ${pid}\\);`),
    );
    const elsewhere = await spawnCommand(['status'], {
      env: { EARSHOT_LISTEN: '127.0.0.1:9' },
      cwd: folder,
    }).ended;
    expect(elsewhere.out).toContain(`a receiver uses this data directory: process ${pid}`);
    setup.child.kill('SIGINT');
    expect(await setup.exit).toEqual([0, null]);
    expect(setup.output()).toContain('the receiver recovers lost notifications');
    expect((await inFolder(['status'], folder)).out).toContain('The receiver is not running');
    expect(readdirSync(join(folder, 'data'))).not.toContain('receiver.json');
  });

  it('registers nothing when the password is wrong, and continues with the next run', {
    timeout: 120_000,
  }, async () => {
    const { folder, sandbox, env, flags, passwordFile, envFile } = await openContext();
    writeFileSync(passwordFile, 'wrong\n');
    const argv = ['setup', ...flags, '--no-stay'];
    const failed = await spawnCommand(argv, { env, cwd: folder }).ended;
    expect(failed).toMatchObject({ code: 1 });
    expect(failed.out).toMatch(/^critical +login/m);
    expect(failed.err).toContain('Nothing was registered.');
    expect(sandbox.subscriptions()).toEqual([]);
    expect(existsSync(envFile)).toBe(true);
    writeFileSync(passwordFile, account.password);
    const only = ['setup', '--collection', 'S2', '--yes', '--no-stay'];
    const done = await inFolder(only, folder);
    expect(done).toMatchObject({ code: 0 });
    expect(sandbox.subscriptions()).toHaveLength(1);
  });
});

const hasScript = existsSync('/usr/bin/script');

it.skipIf(!hasScript)(
  'a password is not shown on a terminal (needs script of util-linux)',
  async () => {
    const cwd = temporaryDirectory();
    const shown = `${process.execPath} ${program} setup --dry-run --yes --host earshot.example.org --agree --account-username me --collection S2`;
    const child = spawn('script', ['-qec', shown, '/dev/null'], { cwd, env: bareEnvironment({}) });
    onTestFinished(() => void child.kill('SIGKILL'));
    const { says, exit, output } = watch(child);
    await says('Password of the catalogue account (not shown): ');
    child.stdin.write('hunter2-of-mine\n');
    await exit;
    expect(output()).toContain('EARSHOT_ACCOUNT_PASSWORD=********');
    expect(output()).not.toContain('hunter2');
  },
);
