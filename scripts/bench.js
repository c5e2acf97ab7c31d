/**
 * `npm run bench`, and by name `bench:query` and similar, `attack` and `check:dashboard`: checks
 * the version of Node, then runs the program.
 */
import './require-node.js';

const programs = {
  alarms: () => import('../bench/alarms.ts'),
  dashboard: () => import('../bench/dashboard.ts'),
  files: () => import('../bench/files.ts'),
  page: () => import('../bench/page.ts'),
  pull: () => import('../bench/pull.ts'),
  query: () => import('../bench/query.ts'),
  rest: () => import('../bench/rest.ts'),
  shared: () => import('../bench/shared.ts'),
  steady: () => import('../bench/steady.ts'),
  'attack fuzz': () => import('../test/attack/fuzz.ts'),
  'attack scan': () => import('../test/attack/scan.ts'),
  'attack slow': () => import('../test/attack/slow.ts'),
};

const argv = process.argv.slice(2);
const name = argv[0] === 'attack' ? argv.splice(0, 2).join(' ') : argv[0];
const load = Object.entries(programs).find(([known]) => known === name)?.[1];
if (load !== undefined && argv[0] === name) argv.shift();
if (load === undefined && name?.startsWith('attack')) {
  const names = Object.keys(programs).flatMap((known) => known.split('attack ').slice(1));
  process.stderr.write(`Usage: npm run attack -- ${names.join('|')} [options]\n`);
  process.exitCode = 2;
} else {
  const { runBenchmark } = await import('../bench/harness.ts');
  const { benchmark } = await (load?.() ?? import('../bench/bench.ts'));
  process.exitCode = await runBenchmark(benchmark, argv, process);
}
