/** Prints the findings of the data directory check. Runs under ordinary permission checks. */
import { createStoreChecks } from '../../src/store/store-checks.ts';

const [dataDir = ''] = process.argv.slice(2);
const checks = createStoreChecks(dataDir);
process.stdout.write(JSON.stringify(await checks.directory()));
