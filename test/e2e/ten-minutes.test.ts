/** The ten minutes of docs/operations.md, word for word, on a clone of what is committed. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { hasPebble } from '../helpers/pebble.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const project = resolve(import.meta.dirname, '../..');
const page = readFileSync(join(project, 'docs/operations.md'), 'utf8');

/** The fences of shell commands under a heading, up to the next one. */
function commandsUnder(heading: string): string[] {
  const start = page.indexOf(`\n${heading}\n`);
  if (start === -1) throw new Error(`There is no heading "${heading}".`);
  const rest = page.slice(start + heading.length + 1);
  const section = rest.slice(0, /\n#+ /.exec(rest)?.index ?? rest.length);
  return [...section.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, text = '']) => text);
}

/** Runs a script as a user would type it, and ends with the test whatever it has left running. */
async function runScript(script: string, cwd: string) {
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !/^(EARSHOT_|VITEST|NODE_ENV)/.test(name)),
  );
  // Bounded by itself, too: it must end when the test is killed.
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
      // Nothing was left.
    }
  });
  let out = '';
  let err = '';
  shell.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  shell.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text;
  });
  // Not `close`: what runs on in the background keeps the pipes open.
  const [code] = await once(shell, 'exit');
  return { code, out, err };
}

describe.skipIf(!hasPebble)('the ten minutes of docs/operations.md (Pebble, sandbox)', () => {
  it('end with stored notifications', { timeout: 240_000 }, async () => {
    const folder = temporaryDirectory();
    const trial = join(folder, 'trial');
    mkdirSync(trial);
    const [get = '', settings = '', ...rest] = commandsUnder(
      '## From an empty machine to the first notification',
    );
    const [authority = '', lines = ''] = commandsUnder('### The same without a host of your own');
    expect(rest).toHaveLength(3);
    const script = [
      get,
      `cd ${trial}\n${authority}\ncd ${folder}/earshot`,
      settings,
      `cat >> .env <<'LINES'\n${lines}LINES`,
      ...rest,
      'echo RESULT; npm run -s query -- --output json',
    ]
      .join('\n')
      .replaceAll('<this repository>', project)
      .replaceAll('<the project>', join(folder, 'earshot'))
      .replaceAll('<that folder>', trial);
    const { code, out, err } = await runScript(script, folder);
    expect({ code, err: code === 0 ? '' : `${err}\n${out}` }).toEqual({ code: 0, err: '' });
    const rows = JSON.parse(out.slice(out.indexOf('RESULT') + 'RESULT'.length)) as object[];
    expect(rows.length).toBeGreaterThanOrEqual(2);
    expect(rows[0]).toMatchObject({ event: 'created', subscription: 'default', source: 'push' });
    expect(err).toMatch(/ 0 failed, /);
  });
});
