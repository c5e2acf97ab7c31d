/**
 * `npm run check:deletion [-- <feature>…]`: removes each feature that no other one needs (or the named ones) from a copy
 * of the sources: its folder, and its lines in src/app.ts and src/index.ts. The rest must pass the type check and the architecture test,
 * print the help, and start. Exits with 1 after a failure.
 */
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './require-node.js';

const root = fileURLToPath(new URL('../', import.meta.url));
const { app } = await import('../src/app.ts');
const folders = readdirSync(join(root, 'src/features'));
/** @type {Set<string>} */
const needed = new Set(app.flatMap((feature) => ('needs' in feature ? feature.needs : [])));
const named = process.argv.slice(2);
const names = named.length > 0 ? named : folders.filter((name) => !needed.has(name));

/** Copied files; the tests are those of the architecture. */
const copied = [
  ...['src', 'scripts', 'docs', 'package.json', 'tsconfig.json', 'vitest.config.ts', 'earshot'],
  ...['CONTRIBUTING.md', 'test/architecture.test.ts', 'test/promises.ts', 'test/helpers'],
];

/** @param {string} folder @param {string} feature */
function copyWithout(folder, feature) {
  for (const path of copied) cpSync(join(root, path), join(folder, path), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  rmSync(join(folder, 'src/features', feature), { recursive: true });
  const list = join(folder, 'src/app.ts');
  const text = readFileSync(list, 'utf8');
  const line = new RegExp(`^import \\{ (\\w+) \\} from './features/${feature}/index.ts';\\n`, 'm');
  const [whole = '', variable = ''] = line.exec(text) ?? [];
  writeFileSync(list, text.replace(whole, '').replace(`  ${variable},\n`, ''));
  const library = join(folder, 'src/index.ts');
  const lines = readFileSync(library, 'utf8').split('\n');
  writeFileSync(library, lines.filter((one) => !one.includes(`./features/${feature}/`)).join('\n'));
  const settings = { extends: './tsconfig.json', include: ['src'] };
  writeFileSync(join(folder, 'tsconfig.deletion.json'), JSON.stringify(settings));
}

/** @param {string} folder @param {string} command @param {string[]} words */
function failureOf(folder, command, ...words) {
  const program = join(root, 'node_modules/.bin', command);
  const { status, stdout, stderr } = spawnSync(program, words, { cwd: folder, encoding: 'utf8' });
  return status === 0 ? null : `${command} ${words[0]}: ${`${stdout}${stderr}`.slice(0, 2_000)}`;
}

/** Settings of a receiver that is reachable on this machine only. */
const env = {
  EARSHOT_LISTEN: '127.0.0.1:0',
  EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
  EARSHOT_PUBLIC_URL: 'https://receiver.test',
  EARSHOT_ENDPOINT_USERNAME: 'catalogue',
  EARSHOT_ENDPOINT_PASSWORD: 'a-long-random-text',
};
const startMsMax = 20_000;
const readyText = 'ready to receive';

/** Starts the receiver, and stops it when it is ready. @param {string} folder */
async function startFailure(folder) {
  const script = join(folder, 'scripts/earshot.js');
  const hasCertificate = existsSync(join(folder, 'src/features/certificate'));
  const child = spawn(process.execPath, [script, 'start'], {
    cwd: folder,
    env: {
      ...{ ...env, PATH: process.env.PATH, EARSHOT_DATA_DIR: join(folder, 'data') },
      ...(hasCertificate ? { EARSHOT_TLS: 'off' } : {}),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), startMsMax);
  let log = '';
  child.stderr.on('data', (chunk) => {
    const wasReady = log.includes(readyText);
    log += chunk;
    if (!wasReady && log.includes(readyText)) child.kill('SIGTERM');
  });
  const code = await ended;
  clearTimeout(timer);
  return code === 0 && log.includes('"stopped"') ? null : `earshot start: ${log.slice(-2_000)}`;
}

for (const name of names) {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-deletion-'));
  try {
    copyWithout(folder, name);
    const failure =
      failureOf(folder, 'tsc', '--noEmit', '--project', 'tsconfig.deletion.json') ??
      failureOf(folder, 'vitest', 'run', 'test/architecture.test.ts') ??
      failureOf(folder, 'node', 'scripts/earshot.js', '--help') ??
      (await startFailure(folder));
    process.stdout.write(`${failure === null ? 'ok  ' : 'FAIL'}  ${name}\n`);
    if (failure === null) continue;
    process.stdout.write(`${failure}\n`);
    process.exitCode = 1;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
