/** Reads a page of docs: the blocks of one language, and commands with their printed output. */
import { readFileSync } from 'node:fs';

/** Environment of a command that is called as the pages do. */
export const asOnPages = { earshot_called_as: './earshot' };

export function readPage(name: string): string {
  return readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
}

/** Returns the contents of all fenced blocks of a language, in order. */
export function blocks(page: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\`$`, 'gms');
  return [...page.matchAll(fence)].map(([, inside = '']) => inside);
}

/** Returns blocks of `console` that begin with `$ ./earshot …`: their text, first line, and arguments of the command. */
export function sessionsOf(page: string) {
  return blocks(page, 'console').map((text) => {
    const [line = ''] = text.split('\n');
    return { text, line, command: words(line.replace(/^\$ \.\/earshot /, '')) };
  });
}

/** Splits a line without variables as a shell does. */
export function words(line: string): string[] {
  return [...line.trim().matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(
    ([, double, single, bare]) => double ?? single ?? bare ?? '',
  );
}
