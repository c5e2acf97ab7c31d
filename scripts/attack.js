/** The command of `npm run attack`: checks Node, then attacks a receiver of its own. */
import './require-node.js';

const { runAttack } = await import('../bench/attack/attack.ts');

process.exitCode = await runAttack(process.argv.slice(2), process);
