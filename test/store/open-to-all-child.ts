/** Opens a store through the library with an open umask, and prints the modes of its files. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { openStore } from '../../src/index.ts';

const [, , dataDir = ''] = process.argv;
process.umask(0);
const store = await openStore({ dataDir });
await store.products.count({});
const modes = readdirSync(dataDir).map((name) => [
  name,
  statSync(join(dataDir, name)).mode & 0o777,
]);
process.stdout.write(JSON.stringify(Object.fromEntries(modes)));
await store.close();
