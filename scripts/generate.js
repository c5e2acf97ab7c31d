/** Writes the generated pages; with --check, fails if one is outdated. */
import { readFileSync, writeFileSync } from 'node:fs';
import './require-node.js';
import { licencesPage } from './licences.js';

const { generatedFiles } = await import('./generated-files.ts');

const root = new URL('../', import.meta.url);
const check = process.argv.includes('--check');
const lock = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'));
const pages = { ...(await generatedFiles()), 'docs/reference/licences.md': licencesPage(lock) };
for (const [path, text] of Object.entries(pages)) {
  const file = new URL(path, root);
  if (!check) writeFileSync(file, text);
  else if (readFileSync(file, 'utf8') !== text) {
    process.stderr.write(`${path} is outdated. Run: npm run generate\n`);
    process.exitCode = 1;
  }
}
