/** The command of `npm run bench:month`: checks Node, then lets a month pass. */
import './require-node.js';

const { runMonthBench } = await import('../bench/month.ts');

process.exitCode = await runMonthBench(process.argv.slice(2), process);
