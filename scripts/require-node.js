/** Exits on an unsupported version of Node, before any code loads that requires a newer one. */
import { existsSync } from 'node:fs';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
// 23 and early 24 cannot strip types or print a warning at each start; zstd dictionaries require 24.6.
const isSupported = (major === 22 && minor >= 19) || (major === 24 && minor >= 6) || major > 24;
if (!isSupported) {
  const advice = existsSync(new URL('../src/', import.meta.url))
    ? 'Run it through npm (for example `npm run earshot -- --help`), which uses the Node 24 installed by `npm ci`'
    : 'Install a newer version (https://nodejs.org)';
  process.stderr.write(
    `earshot requires Node 22.19 or newer (for Node 24: 24.6); this is ${process.versions.node}. ${advice}.\n`,
  );
  process.exit(2);
}
