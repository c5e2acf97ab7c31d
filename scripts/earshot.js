#!/usr/bin/env -S node --max-semi-space-size=16
/** The command `earshot`: checks Node, then runs the command line. */
import { existsSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import './require-node.js';

// A query, which only reads, gives way to the receiver on the same machine from its first moment on.
if (process.argv[2] === 'query') setPriority(19);

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
