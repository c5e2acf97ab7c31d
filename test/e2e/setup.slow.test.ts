/** `earshot setup` as a user runs it: the commands of docs/start.md, unchanged, in a clone of the last commit. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { freePort } from '../helpers/free-ports.ts';
import { hasPebble, startPebble } from '../helpers/pebble.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const project = resolve(import.meta.dirname, '../..');
const page = `\n${readFileSync(join(project, 'docs/start.md'), 'utf8')}`;

/** Returns the shell commands under a heading, one string for each code block. */
function commandsUnder(heading: string): string[] {
  const start = page.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`There is no heading "${heading}".`);
  const rest = page.slice(start + heading.length + 1);
  const section = rest.slice(0, /\n#+ /.exec(rest)?.index ?? rest.length);
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text);
}

/** Runs a script as a user would type it. Its remaining processes end with the test. */
async function runScript(script: string, cwd: string) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(EARSHOT_|VITEST|NODE_ENV)/.test(name)),
  );
  // A separate time limit, because it must end even if the test is killed.
  const shell = spawn('timeout', ['--kill-after=5', '235', 'bash', '-ec', script], {
    cwd,
    env: { ...env, npm_config_prefer_offline: 'true' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  onTestFinished(() => {
    try {
      process.kill(-(shell.pid ?? 0), 'SIGKILL');
    } catch {
      // All processes have ended.
    }
  });
  let [out, err] = ['', ''];
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  // Not `close`: background processes keep the pipes open.
  const [code] = await once(shell, 'exit');
  return { code, out, err };
}

/** Opens the context of the page: an account, and a certificate authority that reaches this machine. */
async function openContext(folder: string) {
  const pebble = await startPebble();
  const root = join(folder, 'root.pem');
  const authority = join(folder, 'authority.pem');
  writeFileSync(root, await pebble.readRoot());
  writeFileSync(authority, pebble.caPem);
  const account = { username: 'me@example.org', password: 'the-password-of-my-account' };
  const sandbox = await startSandbox({
    ...{ account, now: Date.now, ratePerSecond: 5 },
    trustedCaPems: [await pebble.readRoot()],
  });
  onTestFinished(() => sandbox.close());
  const port = await freePort();
  return {
    host: `localhost:${port}`,
    password: account.password,
    settings: [
      `EARSHOT_LISTEN=127.0.0.1:${port}`,
      `EARSHOT_CONSOLE_LISTEN=127.0.0.1:${await freePort()}`,
      `EARSHOT_ACME_DIRECTORY=${pebble.directoryUrl}`,
      `EARSHOT_ACME_CA=${authority}`,
      `EARSHOT_ACME_HTTP_LISTEN=127.0.0.1:${pebble.ports.http}`,
      `EARSHOT_PROBE_CA=${root}`,
      `EARSHOT_CATALOGUE_URL=${sandbox.catalogueUrl}`,
      `EARSHOT_TOKEN_URL=${sandbox.tokenUrl}`,
    ],
  };
}

const [install = '', ...otherInstalls] = commandsUnder('# Getting started');
const [flags = '', inspect = '', ...others] = commandsUnder('## First notification');

describe.skipIf(!hasPebble)('the commands of docs/start.md (needs pebble)', () => {
  it('end with stored notifications, and setup as the only receiver until it is stopped', {
    timeout: 240_000,
  }, async () => {
    const folder = temporaryDirectory();
    const { host, password, settings } = await openContext(folder);
    expect(install).toBe('npm ci\n./earshot setup\n');
    expect([otherInstalls, others]).toEqual([[], []]);
    const script = [
      `git clone -q ${project} earshot && cd earshot && npm ci`,
      `echo ${password} > account-password; chmod 600 account-password`,
      // Later commands get these settings only from .env.
      `env ${settings.join(' ')} ${flags.trimEnd()} > setup.log 2>&1 & SETUP=$!`,
      'until grep -q "^setup: first" setup.log; do kill -0 $SETUP || { cat setup.log; exit 9; }; sleep 1; done',
      inspect,
      'echo RESULT; npm run -s query -- --output json; echo SECOND',
      './earshot start 2>&1 || echo "REFUSED by $SETUP"',
      'kill -INT $SETUP; wait $SETUP; echo STOPPED; ./earshot status || true',
      'ls -l .env; cat .env setup.log',
    ]
      .join('\n')
      .replaceAll('--host earshot.example.org', `--host ${host}`);
    const { code, out, err } = await runScript(script, folder);
    expect({ code, err: code === 0 ? '' : `${err}\n${out}` }).toEqual({ code: 0, err: '' });
    const [, result = '', second = '', stopped = ''] = out.split(/^(?:RESULT|SECOND|STOPPED)$/m);
    const rows = JSON.parse(result) as object[];
    expect(rows.length).toBeGreaterThanOrEqual(2);
    expect(rows[0]).toMatchObject({ event: 'created', subscription: 'default', source: 'push' });
    expect(err).toMatch(/ 0 critical, /);
    const [, pid = ''] = /REFUSED by (\d+)/.exec(second) ?? [];
    expect(second).toContain(`process ${pid}, https://localhost:`);
    expect(second).toContain('Nothing was changed.');
    expect(stopped).toContain('The receiver is not running');
    expect(stopped).toMatch(/^-rw------- .* \.env$/m);
    for (const text of [out, err]) expect(text).not.toContain(password);
  });
});

it.skipIf(!existsSync('/usr/bin/script'))(
  'a password is not shown on a terminal (needs script of util-linux)',
  async () => {
    const cwd = temporaryDirectory();
    const program = join(project, 'scripts/earshot.js');
    const shown = `${process.execPath} ${program} setup --dry-run --yes --host earshot.example.org --agree --account-username me --collection S2`;
    const child = spawn('script', ['-qec', shown, '/dev/null'], { cwd, env: bareEnvironment({}) });
    onTestFinished(() => void child.kill('SIGKILL'));
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    await expect.poll(() => output).toContain('Password of the catalogue account (not shown): ');
    child.stdin.write('hunter2-of-mine\n');
    await once(child, 'exit');
    expect(output).toContain('EARSHOT_ACCOUNT_PASSWORD=********');
    expect(output).not.toContain('hunter2');
  },
);
