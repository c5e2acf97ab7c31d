/** The command of `npm run bench:alarms`: checks Node, then simulates. */
import './require-node.js';

const { runFalseAlarms } = await import('../bench/false-alarms.ts');

process.exitCode = await runFalseAlarms(process.argv.slice(2), process);
