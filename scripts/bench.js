/** The command of `npm run bench`: checks Node, then measures. */
import './require-node.js';

const { runBench } = await import('../bench/bench.ts');

process.exitCode = await runBench(process.argv.slice(2), process);
