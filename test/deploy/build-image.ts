/** Builds the image: executes the Dockerfile in roots of Debian packages, as Docker does in its base image. */
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { expect } from 'vitest';
import { buildRoot, npmOptions, startContainer } from './debian.ts';
import { contextOf, type Stage, stagesOf } from './dockerfile.ts';

const checkout = join(import.meta.dirname, '../..');
const stages = stagesOf(readFileSync(join(checkout, 'Dockerfile'), 'utf8'));

/** Executes the instructions of a stage in its root; returns the working directory, the user and the volumes. */
async function execute({ instructions }: Stage, root: string, sources: Map<string, string>) {
  const result = { workdir: '/', user: '0:0', volumes: [] as string[] };
  const env: string[] = [];
  for (const { keyword, rest } of instructions) {
    if (keyword === 'RUN') {
      const words = [`--chdir=${result.workdir}`, ...env, ...npmOptions(), '/bin/sh', '-c', rest];
      const { ended, printed } = startContainer(root, { enter: [] }, words);
      expect(await ended, `${rest}\n${printed()}`).toBe(0);
    } else if (keyword === 'COPY') {
      const [, from = '', paths = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(rest) ?? [];
      copy(sources.get(from) ?? '', paths.split(' '), join(root, result.workdir));
    } else if (keyword === 'WORKDIR') {
      result.workdir = rest;
      mkdirSync(join(root, rest), { recursive: true });
    } else if (keyword === 'ENV') {
      for (const pair of rest.split(/\s+/)) env.push(`--setenv=${pair}`);
    } else if (keyword === 'USER') result.user = rest;
    else if (keyword === 'VOLUME') result.volumes.push(rest);
    else expect(['EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD']).toContain(keyword);
  }
  return result;
}

/** As COPY: of a folder, its content. */
function copy(source: string, paths: string[], workdir: string): void {
  const target = paths.pop() ?? '';
  expect(target.at(-1)).toBe('/');
  for (const path of paths) {
    const from = join(source, path);
    const to = resolve(workdir, target, statSync(from).isDirectory() ? '' : basename(path));
    cpSync(from, to, { recursive: true, verbatimSymlinks: true });
  }
}

/** Builds the image; returns its root, and what the last stage set. */
export async function buildImage(folder: string) {
  const context = join(folder, 'context');
  const { names, not } = contextOf(readFileSync(join(checkout, '.dockerignore'), 'utf8'));
  const excluded = not.map((path) => join(checkout, path));
  for (const name of names) {
    const filter = (path: string) => !excluded.includes(path);
    cpSync(join(checkout, name), join(context, name), { recursive: true, filter });
  }
  const base = join(folder, 'base');
  buildRoot(base);
  const version = execFileSync('chroot', [base, 'node', '--version'], { encoding: 'utf8' }).trim();
  const [build, last] = stages;
  if (build === undefined || last === undefined || stages.length > 2) throw new Error('two stages');
  for (const { image } of stages) expect(image).toBe(`node:${version.slice(1)}-trixie-slim`);
  const [first, root] = [join(folder, 'build'), join(folder, 'image')];
  for (const path of [first, root]) execFileSync('cp', ['-a', base, path]);
  const sources = new Map([
    ['', context],
    ['build', first],
  ]);
  await execute(build, first, sources);
  return { root, stage: last, ...(await execute(last, root, sources)) };
}
