#!/usr/bin/env -S node --max-semi-space-size=16
/** The command `earshot`: checks Node, then runs the command line. */
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import './require-node.js';

// A query, which only reads, gives way to the receiver on the same machine from its first moment on.
if (process.argv[2] === 'query') setPriority(19);

const { createProcessIo } = await import('../src/cli/io.ts');
const { run } = await import('../src/cli/run.ts');
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

process.exitCode = await run(process.argv.slice(2), createProcessIo(), version);
