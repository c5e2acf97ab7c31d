/** The command of `npm run bench:bodies`: checks Node, then measures what compressing bodies costs and saves. */
import './require-node.js';

const { runBodyBench } = await import('../bench/body-bench.ts');

process.exitCode = await runBodyBench(process.argv.slice(2), process);
