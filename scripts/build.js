/** `npm run build`: compiles src to an empty dist. */
import { spawnSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import './require-node.js';

const root = fileURLToPath(new URL('../', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const compiled = spawnSync('tsc', ['--project', 'tsconfig.build.json'], {
  cwd: root,
  // Like npm: always uses the compiler of this folder.
  env: { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` },
  stdio: 'inherit',
});
process.exitCode = compiled.status ?? 1;
