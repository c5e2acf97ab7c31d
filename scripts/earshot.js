#!/usr/bin/env -S node --max-semi-space-size=4
/** The `earshot` command: checks the version of Node, then runs the command line. */
import { existsSync, readFileSync, statSync } from 'node:fs';
import module from 'node:module';
import { setPriority } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import './fewer-messages.js';
import './require-node.js';

try {
  process.cwd();
} catch {
  process.stderr.write('earshot: The working folder was removed. Change to another folder.\n');
  process.exit(1);
}

const name = process.argv[process.argv[2] === '--data-dir' ? 4 : 2];

// Queries only read, and run with low priority so that the receiver on the same machine has precedence.
if (name === 'query') setPriority(19);

// Settings that only work at the start of a process, which therefore executes itself again; not available on Windows.
// `start`: once V8 has found that objects of a place in the code live long, it always creates them in the old generation:
// in half of the bursts those of requests, which then cost a fifth more processor time and 50 MB.
// Threads share two allocators (glibc), because each keeps freed memory: 30 MB less at rest. Fixed thresholds
// return freed memory to the system: without them glibc raises them, and keeps 15 MB at rest, 100 MB after a comparison.
// With lower ones, each commit returns and requests the memory of its packs: a tenth of the processor time.
// `reconcile`: limits memory for large pages, which V8 otherwise collects late.
const [tenureFlag, memoryFlag] = ['--no-allocation-site-pretenuring', '--optimize-for-size'];
const allocator = {
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '1048576',
  MALLOC_TRIM_THRESHOLD_: '2097152',
};
// Threads get it, too.
const preloaded = new URL('fewer-messages.js', import.meta.url).href;
const isMissing =
  (name === 'start' && !process.execArgv.includes(preloaded)) ||
  (name === 'reconcile' && !process.execArgv.includes(memoryFlag));
if (isMissing && process.platform !== 'win32') {
  const { argv, execArgv, execPath, env } = process;
  const flags = name === 'reconcile' ? [memoryFlag] : [tenureFlag, '--import', preloaded];
  const settings = name === 'start' ? allocator : {};
  try {
    process.execve?.(execPath, [execPath, ...execArgv, ...flags, ...argv.slice(1)], {
      ...settings,
      ...env,
    });
  } catch {
    // Not permitted: continues with higher memory use.
  }
}

// Already in effect; programs that earshot starts do not get it.
if (name === 'start') {
  for (const [setting, value] of Object.entries(allocator)) {
    if (process.env[setting] === value) delete process.env[setting];
  }
}

// The compile cache halves the start time, also of threads, which read the folder from the environment. Not written
// to another user's installation, so that its owner can remove it.
const own = fileURLToPath(new URL('..', import.meta.url));
const isOurs = process.getuid === undefined || statSync(own).uid === process.getuid();
if (isOurs && process.env.NODE_COMPILE_CACHE === undefined) {
  const folder = join(own, 'node_modules', '.cache', 'compiled');
  module.enableCompileCache(folder);
  process.env.NODE_COMPILE_CACHE = folder;
}

// V8 reads this when a thread starts. The flag of the process overrides the limits of its threads, which need a smaller
// young generation than the main thread.
setFlagsFromString('--max-semi-space-size=2');

// A checkout always runs its sources, even after a build; a package contains only the build.
const sources = new URL('../src/', import.meta.url);
const built = new URL('../dist/', import.meta.url);
const isCheckout = existsSync(sources);
if (!isCheckout && !existsSync(built)) {
  process.stderr.write('earshot: the package contains no build. Run: npm run package\n');
  process.exit(1);
}
const load = (/** @type {string} */ name) =>
  import(isCheckout ? `${sources}${name}.ts` : `${built}${name}.js`);

const { app } = await load('app');
const { createProcessIo } = await load('core/cli/io');
const { run } = await load('core/cli/run');
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

process.exitCode = await run(process.argv.slice(2), createProcessIo(app), version);
