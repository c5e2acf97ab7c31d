/** The Dockerfile as its parts: stages with their instructions; and what `.dockerignore` lets through. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '../..');
export const dockerfileText = readFileSync(join(root, 'Dockerfile'), 'utf8');

export interface Instruction {
  keyword: string;
  /** What stands behind the keyword, in one line. */
  rest: string;
}

export interface Stage {
  image: string;
  instructions: Instruction[];
}

/** As much of the syntax as our own file uses: comments, lines that go on, no heredocs. */
export function stagesOf(text: string): Stage[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '');
  const stages: Stage[] = [];
  for (const line of lines) {
    const [, keyword = '', rest = ''] = /^(\w+) (.*)$/.exec(line) ?? [];
    if (keyword === 'FROM') stages.push({ image: rest.split(' ')[0] ?? '', instructions: [] });
    else stages.at(-1)?.instructions.push({ keyword, rest });
  }
  return stages;
}

/** The words of an instruction in its JSON form; of HEALTHCHECK, those of its CMD. */
export function wordsOf(stage: Stage | undefined, keyword: string): string[] {
  const { rest = '' } = stage?.instructions.find((one) => one.keyword === keyword) ?? {};
  return JSON.parse(rest.replace(/^.*CMD (?=\[)/, ''));
}

/** The variables that a stage sets. */
export function environmentOf(stage: Stage | undefined): Record<string, string> {
  const lines = stage?.instructions.filter(({ keyword }) => keyword === 'ENV') ?? [];
  const pairs = lines.flatMap(({ rest }) => rest.trim().split(/\s+/));
  return Object.fromEntries(pairs.map((pair) => pair.split('=', 2)));
}

/** Names in the project's root that reach the build, and paths below them that do not. */
export function contextOf(ignoreText: string): { names: string[]; not: string[] } {
  const lines = ignoreText.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const [first, ...others] = lines;
  if (first !== '*') throw new Error('.dockerignore must begin by leaving out everything.');
  const names = others.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  return { names, not: others.filter((line) => !line.startsWith('!')) };
}
