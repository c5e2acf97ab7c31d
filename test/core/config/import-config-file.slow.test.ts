/**
 * `earshot.config.ts` in any folder: the import of 'earshot', and its treatment as an ES module.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { noSettings } from '../../../src/core/config/load.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const module = join(import.meta.dirname, '../../../src/core/config/subscriptions-file.ts');

/** Loads the folder's file in a separate program. */
function load(files: Record<string, string>) {
  const folder = temporaryDirectory();
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  const program = `import { loadSubscriptionsFile } from ${JSON.stringify(module)};
    const loaded = await loadSubscriptionsFile(${JSON.stringify({ workingDir: folder, settings: noSettings })});
    console.log(JSON.stringify(loaded.map(({ filter }) => filter)));`;
  const args = ['--input-type=module', '--eval', program];
  const ran = spawnSync(process.execPath, args, { cwd: folder, encoding: 'utf8' });
  return { out: ran.stdout.trim(), err: ran.stderr };
}

const config = `import { defineConfig } from 'earshot';
  import { filter } from './parts/filter.ts';
  interface Area { filter: string }
  const alps: Area = { filter };
  export default defineConfig({ subscriptions: { alps } });\n`;
const filter = `import { defineConfig } from 'earshot';
  export const filter: string = typeof defineConfig;\n`;
const files = { 'earshot.config.ts': config, 'parts/filter.ts': filter };
const empty = `export const defineConfig = () => ({ subscriptions: {} });`;
const dependency = 'node_modules/areas';

it.each<[string, Record<string, string>]>([
  ['without packages', {}],
  ['of a package that is CommonJS', { 'package.json': '{"type":"commonjs"}' }],
  ['of a package that is ESM', { 'package.json': '{"type":"module"}' }],
  [
    'with another earshot installed',
    {
      'node_modules/earshot/package.json': '{"type":"module","exports":"./index.js"}',
      'node_modules/earshot/index.js': empty,
    },
  ],
])("resolves 'earshot' to this program in a folder %s, without a warning", (_, others) => {
  expect(load({ ...files, ...others })).toEqual({ out: '["function"]', err: '' });
});

it('resolves all other packages as Node does', () => {
  const text = `import { filter } from 'areas';
    import { basename } from 'node:path';
    export default { subscriptions: { alps: { filter: basename(filter) } } };\n`;
  const areas = {
    [`${dependency}/package.json`]: '{"exports":"./index.cjs"}',
    [`${dependency}/index.cjs`]: "exports.filter = 'from/areas';",
  };
  expect(load({ 'earshot.config.ts': text, ...areas })).toEqual({ out: '["areas"]', err: '' });
});
