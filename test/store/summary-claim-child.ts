/**
 * Claims a job with a budget of one request per hour, reports it, and holds the claim until it is
 * killed.
 */
import { openStore } from '../../src/store/store.ts';
import { claim } from './summary-jobs.ts';

const [, , dataDir = '', id = ''] = process.argv;
const { summaries } = await openStore({ dataDir, nowUs: () => 0 });
const { outcome } = await claim(summaries, { id: Number(id), revision: 1 });
process.stdout.write(`${outcome}\n`);
