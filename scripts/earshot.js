#!/usr/bin/env -S node --max-semi-space-size=16
/** The command `earshot`: checks Node, then runs the command line. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import module from 'node:module';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import './require-node.js';

const name = process.argv[process.argv[2] === '--data-dir' ? 4 : 2];

// A query, which only reads, gives way to the receiver on the same machine from its first moment on.
if (name === 'query') setPriority(19);

// One large page after the other: V8 would rather let them pile up than look through them. Only a program's start
// takes the flag, so this one begins again, in the same process; Windows has nothing of the kind.
const sparing = '--optimize-for-size';
const isLarge = name === 'reconcile' && process.platform !== 'win32';
if (isLarge && !process.execArgv.includes(sparing)) {
  const { argv, execArgv, execPath, env } = process;
  try {
    process.execve?.(execPath, [execPath, ...execArgv, sparing, ...argv.slice(1)], env);
  } catch {
    // Forbidden to it: it takes up more memory then.
  }
}

// Halves the time to the first word, and what threads take up: they find the folder in the environment. Another user's
// installation is not written to, so that its owner can remove it.
const own = fileURLToPath(new URL('..', import.meta.url));
const isOurs = process.getuid === undefined || statSync(own).uid === process.getuid();
if (isOurs && process.env.NODE_COMPILE_CACHE === undefined) {
  const folder = join(own, 'node_modules', '.cache', 'compiled');
  module.enableCompileCache(folder);
  process.env.NODE_COMPILE_CACHE = folder;
}

// A checkout runs its sources, whatever an earlier build has left; a package has the build alone.
const sources = new URL('../src/', import.meta.url);
const built = new URL('../dist/', import.meta.url);
const isCheckout = existsSync(sources);
if (!isCheckout && !existsSync(built)) {
  process.stderr.write('earshot: this package was packed without a build. Run: npm run package\n');
  process.exit(1);
}
const load = (/** @type {string} */ name) =>
  import(isCheckout ? `${sources}cli/${name}.ts` : `${built}cli/${name}.js`);

const { createProcessIo } = await load('io');
const { run } = await load('run');
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

process.exitCode = await run(process.argv.slice(2), createProcessIo(), version);
