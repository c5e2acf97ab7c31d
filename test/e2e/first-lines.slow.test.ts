/** Start of scripts/earshot.js, before the command line is loaded. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');

/** Module that prints the process at each start of a program, the compile cache at its end, and settings of memory. */
const reporter = `data:text/javascript,
const print = (fields) => process.stderr.write(JSON.stringify(fields) + String.fromCharCode(10));
const malloc = () => Object.keys(process.env).filter((name) => name.startsWith('MALLOC_')).sort();
const { pid, execArgv } = process;
print({ pid, execArgv, malloc: malloc() });
process.on('exit', () => print({ cache: process.env.NODE_COMPILE_CACHE, malloc: malloc() }));
`.replaceAll('\n', '');

function run(argv: readonly string[], env: Record<string, string> = {}) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--max-semi-space-size=16', join(root, 'scripts/earshot.js'), ...argv],
    { encoding: 'utf8', env: { NODE_OPTIONS: `--import "${reporter}"`, ...env } },
  );
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  const reports: { pid?: number; execArgv?: string[]; cache?: string; malloc?: string[] }[] =
    lines.map((line) => JSON.parse(line));
  return { status, starts: reports.filter(({ pid }) => pid !== undefined), end: reports.at(-1) };
}

it('reconcile restarts in the same process with settings for less memory, and keeps its exit code', () => {
  const { status, starts } = run(['reconcile', '--since', 'nope']);
  expect(status).toBe(2);
  const [first, second, ...more] = starts;
  expect(first?.execArgv).toEqual(['--max-semi-space-size=16']);
  expect(second).toEqual({
    pid: first?.pid,
    execArgv: ['--max-semi-space-size=16', '--optimize-for-size'],
    malloc: [],
  });
  expect(more).toEqual([]);
});

it('start restarts in the same process with settings for less memory, unless the user has set them', () => {
  const { starts, end } = run(['start', '--help']);
  expect(starts).toHaveLength(2);
  expect(starts[1]?.pid).toBe(starts[0]?.pid);
  const names = ['MALLOC_ARENA_MAX', 'MALLOC_MMAP_THRESHOLD_', 'MALLOC_TRIM_THRESHOLD_'];
  expect(starts.map(({ malloc }) => malloc)).toEqual([[], names]);
  // Programs that earshot starts do not get them.
  expect(end?.malloc).toEqual([]);
  expect(run(['start', '--help'], { MALLOC_ARENA_MAX: '8' }).starts).toHaveLength(1);
});

it('other commands start once', () => {
  const { status, starts } = run(['coverage', '--help']);
  expect([status, starts.length]).toEqual([0, 1]);
});

it('the compile cache is in the installation unless the user has set another folder', () => {
  const own = join(root, 'node_modules', '.cache', 'compiled');
  expect(run(['--version']).end).toMatchObject({ cache: own });
  const elsewhere = temporaryDirectory();
  const given = run(['--version'], { NODE_COMPILE_CACHE: elsewhere });
  expect(given.end).toMatchObject({ cache: elsewhere });
});
