import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');
/** Makes Node report an old version before the entry point runs. */
const pretend = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'20.20.2'})`;

it.each(['earshot.js', 'bench.js', 'generate.js'])(
  'prints one sentence with the remedy when an old Node runs %s',
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
