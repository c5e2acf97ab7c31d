/** Names commands in texts for people as the user calls them: `npx --no -- earshot status`, `earshot status`. */
import type { Io, Output } from './io.ts';

/** A command stands in backticks, in the usage line, or in an example; the name alone is the program's. */
const commands = /(?<=`|^Usage: |^ {2}\$ (?:.* )?)earshot(?= [a-z[-])/gm;

/** The text with the commands in it as they are called here. For people only: data keeps the plain name. */
export function asCalled(text: string, { env }: Pick<Io, 'env'>): string {
  const name = nameCalled(env);
  return name === 'earshot' ? text : text.replaceAll(commands, name);
}

/** A stream that prints commands as they are called here. */
export function namingCommands(output: Output, io: Pick<Io, 'env'>): Output {
  return {
    write: (chunk) => output.write(typeof chunk === 'string' ? asCalled(chunk, io) : chunk),
    once: (event, listener) => output.once(event, listener),
    get isTTY() {
      return output.isTTY;
    },
    get columns() {
      return output.columns;
    },
  };
}

/** npm says in the environment how it starts a program; without npm, the program is on the path. */
function nameCalled({ npm_command: npm, npm_package_name: project }: Io['env']): string {
  if (npm === undefined) return 'earshot';
  if (npm !== 'exec' && project === 'earshot') return 'npm run -s earshot --';
  // With --no, npx never runs a package of this name from a registry; without --, it takes --help for itself.
  return 'npx --no -- earshot';
}
