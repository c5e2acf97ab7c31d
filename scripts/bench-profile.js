/** The command of `npm run bench:profile`: checks Node, then measures where a notification's time goes. */
import './require-node.js';

const { runProfileBench } = await import('../bench/profile.ts');

process.exitCode = await runProfileBench(process.argv.slice(2), process);
