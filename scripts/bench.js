/**
 * The command of `npm run bench`, and with a name of `bench:query` and its like, `attack`, `train:dictionary` and
 * `check:dashboard`: checks Node, then runs it.
 */
import './require-node.js';

const programs = {
  alarms: () => import('../test/simulation/alarms.ts'),
  attack: () => import('../test/attack/attack.ts'),
  bodies: () => import('../bench/bodies.ts'),
  dashboard: () => import('../bench/dashboard.ts'),
  dictionary: () => import('../bench/train-dictionary.ts'),
  month: () => import('../test/simulation/month.ts'),
  profile: () => import('../bench/profile.ts'),
  query: () => import('../bench/query.ts'),
  reconcile: () => import('../bench/reconcile.ts'),
};

const [name, ...argv] = process.argv.slice(2);
const load = Object.entries(programs).find(([known]) => known === name)?.[1];
const { run } = await (load?.() ?? import('../bench/bench.ts'));
process.exitCode = await run(load === undefined ? process.argv.slice(2) : argv, process);
