/** Reads a page of docs: the blocks of one language, and commands with what they are said to print. */
import { readFileSync } from 'node:fs';

/** A command line and all that it prints. */
export interface Session {
  /** The whole inside of its block. */
  text: string;
  /** The first line of it. */
  line: string;
  /** The words after `$ earshot`. */
  command: string[];
}

export function readPage(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

/** The insides of all fenced blocks of a language, in their order. */
export function blocks(page: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms');
  return [...page.matchAll(fence)].map(([, inside = '']) => inside);
}

/** Blocks of `console` that begin with `$ earshot …`. */
export function sessionsOf(page: string): Session[] {
  return blocks(page, 'console').map((text) => {
    const [line = ''] = text.split('\n');
    return { text, line, command: words(line.replace(/^\$ earshot /, '')) };
  });
}

/** As a shell reads a line without variables. */
function words(line: string): string[] {
  return [...line.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}
