/**
 * `npm run bench`, and by name `bench:query` and similar, `attack`, `train:dictionary` and `check:dashboard`: checks
 * the version of Node, then runs the program.
 */
import './require-node.js';

const programs = {
  alarms: () => import('../test/simulation/alarms.ts'),
  attack: () => import('../test/attack/attack.ts'),
  bodies: () => import('../bench/bodies.ts'),
  dashboard: () => import('../bench/dashboard.ts'),
  dictionary: () => import('../bench/train-dictionary.ts'),
  files: () => import('../bench/files.ts'),
  month: () => import('../test/simulation/month.ts'),
  page: () => import('../bench/page.ts'),
  profile: () => import('../bench/profile.ts'),
  pull: () => import('../bench/pull.ts'),
  query: () => import('../bench/query.ts'),
  rebuild: () => import('../bench/rebuild.ts'),
  reconcile: () => import('../bench/reconcile.ts'),
  shared: () => import('../bench/shared.ts'),
  rest: () => import('../bench/rest.ts'),
  sinks: () => import('../bench/sinks.ts'),
  steady: () => import('../bench/steady.ts'),
};

const [name, ...argv] = process.argv.slice(2);
const load = Object.entries(programs).find(([known]) => known === name)?.[1];
const { run } = await (load?.() ?? import('../bench/bench.ts'));
process.exitCode = await run(load === undefined ? process.argv.slice(2) : argv, process);
