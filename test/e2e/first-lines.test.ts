/** What scripts/earshot.js does before the command line is loaded. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');

/** Tells at each start of a program which one it is, and at its end where its compiled code is kept. */
const told = `data:text/javascript,
const tell = (fields) => process.stderr.write(JSON.stringify(fields) + String.fromCharCode(10));
const { pid, execArgv } = process;
tell({ pid, execArgv });
process.on('exit', () => tell({ cache: process.env.NODE_COMPILE_CACHE }));
`.replaceAll('\n', '');

function run(argv: readonly string[], env: Record<string, string> = {}) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--max-semi-space-size=16', join(root, 'scripts/earshot.js'), ...argv],
    { encoding: 'utf8', env: { NODE_OPTIONS: `--import "${told}"`, ...env } },
  );
  const lines = stderr.split('\n').filter((line) => line.startsWith('{'));
  const tells: { pid?: number; execArgv?: string[]; cache?: string }[] = lines.map((line) =>
    JSON.parse(line),
  );
  return { status, starts: tells.filter(({ pid }) => pid !== undefined), end: tells.at(-1) };
}

it.skipIf(process.platform === 'win32')(
  'reconcile begins again in the same process, sparing with memory, and ends as it should',
  () => {
    const { status, starts } = run(['reconcile', '--from', 'nope']);
    expect(status).toBe(2);
    const [first, second, ...more] = starts;
    expect(first?.execArgv).toEqual(['--max-semi-space-size=16']);
    expect(second).toEqual({
      pid: first?.pid,
      execArgv: ['--max-semi-space-size=16', '--optimize-for-size'],
    });
    expect(more).toEqual([]);
  },
);

it('other commands begin once', () => {
  const { status, starts } = run(['coverage', '--help']);
  expect([status, starts.length]).toEqual([0, 1]);
});

it('compiled code is kept within the installation, unless the user has another place for it', () => {
  const own = join(root, 'node_modules', '.cache', 'compiled');
  expect(run(['--version']).end).toEqual({ cache: own });
  const elsewhere = temporaryDirectory();
  const given = run(['--version'], { NODE_COMPILE_CACHE: elsewhere });
  expect(given.end).toEqual({ cache: elsewhere });
});
