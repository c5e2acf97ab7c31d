/** Stops on a Node that is too old, before any code loads that it cannot run. */
import { existsSync } from 'node:fs';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
// 23 and the first 24 cannot strip types, or warn about it at each start; before 24.6 there is no dictionary for zstd.
const runs = (major === 22 && minor >= 19) || (major === 24 && minor >= 6) || major > 24;
if (!runs) {
  const way = existsSync(new URL('../src/', import.meta.url))
    ? 'run it through npm (for example `npm run earshot -- --help`), which uses the Node 24 that `npm ci` has brought along'
    : 'run it with a newer one (https://nodejs.org)';
  process.stderr.write(
    `earshot needs Node 22.19 or newer (of 24: 24.6) and this is ${process.versions.node}: ${way}.\n`,
  );
  process.exit(2);
}
