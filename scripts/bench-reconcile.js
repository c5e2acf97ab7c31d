/** The command of `npm run bench:reconcile`: checks Node, then measures what a long outage takes. */
import './require-node.js';

const { runReconcileBench } = await import('../bench/reconcile.ts');

process.exitCode = await runReconcileBench(process.argv.slice(2), process);
