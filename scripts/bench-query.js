/** The command of `npm run bench:query`: checks Node, then measures. */
import './require-node.js';

const { runQueryBench } = await import('../bench/query-bench.ts');

process.exitCode = await runQueryBench(process.argv.slice(2), process);
