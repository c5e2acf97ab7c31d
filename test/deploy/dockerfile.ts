/** Reads the Dockerfile and .dockerignore of this repository. */

export interface Instruction {
  keyword: string;
  /** The text after the keyword, on one line. */
  rest: string;
}

export interface Stage {
  image: string;
  instructions: Instruction[];
}

/** Supports the syntax of our own file: comments, continued lines, no heredocs. */
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

/** The arguments of an instruction in JSON form; of HEALTHCHECK, those of its CMD. */
export function wordsOf(stage: Stage | undefined, keyword: string): string[] {
  const { rest = '' } = stage?.instructions.find((one) => one.keyword === keyword) ?? {};
  return JSON.parse(rest.replace(/^.*CMD (?=\[)/, ''));
}

/** Variables that a stage sets. */
export function environmentOf(stage: Stage | undefined): Record<string, string> {
  const lines = stage?.instructions.filter(({ keyword }) => keyword === 'ENV') ?? [];
  const pairs = lines.flatMap(({ rest }) => rest.trim().split(/\s+/));
  return Object.fromEntries(pairs.map((pair) => pair.split('=', 2)));
}

/** Root entries that the build context includes, and paths below them that it excludes. */
export function contextOf(ignoreText: string): { names: string[]; not: string[] } {
  const lines = ignoreText.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const [first, ...others] = lines;
  if (first !== '*') throw new Error('.dockerignore must begin by excluding everything.');
  const names = others.filter((line) => line.startsWith('!')).map((line) => line.slice(1));
  return { names, not: others.filter((line) => !line.startsWith('!')) };
}
