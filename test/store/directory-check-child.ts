/** Prints what the check of a data directory finds; run where permission bits count. */
import { createStoreChecks } from '../../src/store/store-checks.ts';

const [dataDir = ''] = process.argv.slice(2);
const checks = createStoreChecks({ dataDir, nowUs: () => 0, secretFileNames: [] });
process.stdout.write(JSON.stringify(await checks.directory()));
