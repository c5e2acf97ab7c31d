/** Writes the generated pages, or, with --check, fails when one is not current. */
import { readFileSync, writeFileSync } from 'node:fs';
import './require-node.js';

const { generatedFiles } = await import('../src/cli/generated-files.ts');

const root = new URL('../', import.meta.url);
const check = process.argv.includes('--check');
for (const [path, text] of Object.entries(generatedFiles())) {
  const file = new URL(path, root);
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${path} is not current. Run: npm run generate\n`);
    process.exitCode = 1;
  }
}
