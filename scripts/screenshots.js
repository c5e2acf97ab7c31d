/**
 * `npm run screenshots`: writes the pictures of the web page to docs/page. With a folder, `npm run screenshots -- DIR`
 * writes each page there, in both themes and several sizes.
 */
import './require-node.js';

const { run } = await import('../test/core/page/screenshots.ts');
process.exitCode = await run(process.argv.slice(2), process);
