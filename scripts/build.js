/** `npm run build`: compiles src to an empty dist, with the files of the web page. */
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import './require-node.js';

const root = fileURLToPath(new URL('../', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const page = 'console/page/browser';
for (const project of ['tsconfig.build.json', `src/${page}/tsconfig.build.json`]) {
  const compiled = spawnSync('tsc', ['--project', project], {
    cwd: root,
    // Like npm: always uses the compiler of this folder.
    env: { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` },
    stdio: 'inherit',
  });
  process.exitCode ||= compiled.status ?? 1;
}
cpSync(`${root}src/${page}`, `${root}dist/${page}`, {
  recursive: true,
  filter: (file) => !/\.(?:ts|json)$/.test(file),
});
