import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** Makes Node believe that it is an old one, before the entry point runs. */
const pretend = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.20.2'})`;

it.each(['earshot.js', 'bench.js', 'generate.js'])(
  'tells in one sentence what to do when %s is run by an old Node',
  (script) => {
    const args = ['--import', pretend, join(root, 'scripts', script)];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    expect(status).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^earshot requires Node 22\.19 or newer .*; this is 20\.20\.2\. Run it .+\n$/,
    );
    expect(stderr.trim().split('\n')).toHaveLength(1);
  },
);
