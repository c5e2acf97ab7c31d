/** `npm run screenshots`: writes the pictures of the web page to docs/page. */
import './require-node.js';

const { run } = await import('../test/core/page/screenshots.ts');
await run(process);
