/** Reads the examples and console sessions of docs/subscriptions.md. */
import { readFileSync } from 'node:fs';
import type { Entity } from '../../src/domain/filter-tree.ts';

/** A numbered example: lines of flags for `query products`, or a program. */
export interface Example {
  /** For example `18. Across the antimeridian`. */
  title: string;
  entity: Entity;
  /** Number of matches according to the page. */
  count: number;
  /** Arguments of each line; all lines find the same products. */
  lines: string[][];
  /** A program that exports `filter`; null for lines. */
  program: string | null;
}

/** A command line and its complete output. */
export interface Session {
  command: string[];
  printed: string;
}

const page = readFileSync(new URL('../../docs/subscriptions.md', import.meta.url), 'utf8');
const examplesPart = page.slice(page.indexOf('\n## Examples\n'));

/** Throws for an example without lines and program. */
export function readExamples(): Example[] {
  return blocks(examplesPart, 'sh|ts')
    .flatMap((block) => block.split(/^(?=(?:#|\/\/) \d+\. )/m))
    .map(readExample);
}

/** The GeoJSON text of `islands.geojson`. */
export function readGeojson(): string {
  return blocks(examplesPart, 'json').join('');
}

export function readSessions(): Session[] {
  return blocks(page, 'console').map((text) => {
    const [, command = '', printed = ''] = /^\$ earshot ([^\n]*)\n(.*)$/s.exec(text) ?? [];
    return { command: words(command), printed };
  });
}

function readExample(text: string): Example {
  const [head = '', ...rest] = text.split('\n');
  const body = rest.join('\n').trim();
  const [, sign, title = '', count, deleted] =
    /^(#|\/\/) (\d+\. .*) \((\d+)( deleted)?\)$/.exec(head) ?? [];
  if (count === undefined || body === '') throw new Error(`Incomplete example: ${head}`);
  const isProgram = sign === '//';
  return {
    title,
    entity: deleted === undefined ? 'Products' : 'DeletedProducts',
    count: Number(count),
    lines: isProgram ? [] : body.split(/^(?=--)/m).map(words),
    program: isProgram ? body : null,
  };
}

function blocks(text: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`(?:${language})\n(.*?)^\`\`\`$`, 'gms');
  return [...text.matchAll(fence)].map(([, inside = '']) => inside);
}

/** Splits a line without variables as a shell does. */
function words(line: string): string[] {
  return [...line.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}
