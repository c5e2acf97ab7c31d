/** `npm run build`: compiles src to an empty dist, with its other files. */
import { spawnSync } from 'node:child_process';
import { cpSync, globSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import './require-node.js';

const root = fileURLToPath(new URL('../', import.meta.url));
rmSync(`${root}dist`, { recursive: true, force: true });
const page = 'src/core/page/browser';
for (const project of ['tsconfig.build.json', `${page}/tsconfig.build.json`]) {
  const compiled = spawnSync('tsc', ['--project', project], {
    cwd: root,
    // Like npm: always uses the compiler of this folder.
    env: { ...process.env, PATH: `${root}node_modules/.bin:${process.env.PATH}` },
    stdio: 'inherit',
  });
  process.exitCode ||= compiled.status ?? 1;
}
for (const file of globSync('src/**/{browser/*.{css,js,svg},*.xml}', { cwd: root })) {
  cpSync(`${root}${file}`, `${root}dist${file.slice('src'.length)}`);
}
