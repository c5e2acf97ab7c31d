#!/usr/bin/env -S node --max-semi-space-size=16
/** The command `earshot`: checks Node, then runs the command line. */
import { readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import './require-node.js';

// Reading commands give way to the receiver on the same machine, from their first moment on.
if (['query', 'tail', 'quarantine'].includes(process.argv[2] ?? '')) setPriority(19);

const { createProcessIo } = await import('../src/cli/io.ts');
const { run } = await import('../src/cli/run.ts');
const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

process.exitCode = await run(process.argv.slice(2), createProcessIo(), version);
