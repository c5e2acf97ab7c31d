/** The command of `npm run check:dashboard`: checks Node, then shows what each panel of the dashboard shows. */
import './require-node.js';

const { checkDashboard } = await import('../bench/monitoring/check-dashboard.ts');

process.exitCode = await checkDashboard(process);
