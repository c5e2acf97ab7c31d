/** Reads docs/filters.md: its examples, and what commands are said to print. */
import { readFileSync } from 'node:fs';
import type { Entity } from '../../src/domain/filter-tree.ts';

/** One worked example. */
export interface Example {
  /** `18. Across the antimeridian`. */
  title: string;
  entity: Entity;
  /** How many match, as the page says. */
  count: number;
  /** The same filter in one spelling or several. */
  expressions: string[];
  /** The words after `earshot`; null where there are no flags for it. */
  command: string[] | null;
  /** A program that exports `filter`. */
  program: string | null;
  /** The text of the file that the command names. */
  json: string | null;
}

/** A command line and all that it prints. */
export interface Session {
  command: string[];
  printed: string;
}

const page = readFileSync(new URL('../../docs/filters.md', import.meta.url), 'utf8');

/** Throws for an example that lacks what a test needs. */
export function readExamples(): Example[] {
  return page
    .split(/^### (?=\d+\. )/m)
    .slice(1)
    .map(readExample);
}

export function readSessions(): Session[] {
  return blocks(page, 'console').map((text) => {
    const [, command = '', printed = ''] = /^\$ earshot ([^\n]*)\n(.*)$/s.exec(text) ?? [];
    return { command: words(command), printed };
  });
}

function readExample(text: string): Example {
  const title = text.slice(0, text.indexOf('\n'));
  const [, count, deleted] = /^Matches \*\*(\d+)\*\* (deleted )?products?\.$/m.exec(text) ?? [];
  const expressions = blocks(text, 'odata').map((one) => one.trim());
  if (count === undefined || expressions.length === 0) throw new Error(`${title} is incomplete.`);
  const [command = null] = blocks(text, 'sh');
  return {
    title,
    entity: deleted === undefined ? 'Products' : 'DeletedProducts',
    count: Number(count),
    expressions,
    command: command === null ? null : words(command.replace(/^earshot /, '')),
    program: blocks(text, 'ts')[0] ?? null,
    json: blocks(text, 'json')[0] ?? null,
  };
}

function blocks(text: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms');
  return [...text.matchAll(fence)].map(([, inside = '']) => inside);
}

/** As a shell reads a line without variables. */
function words(line: string): string[] {
  return [...line.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}
