/** Rewrites commands in texts to the form in which the user called earshot: `./earshot status` in a checkout. */
import { relative, resolve } from 'node:path';
import { shellText } from '../page/browser/texts.ts';
import type { Io, Output } from './io.ts';

/**
 * Matches commands in backticks, in the usage line and in examples. The name alone is not a command. A container has its
 * own command.
 */
const commands = /(?<=`|^Usage: |^ {0,2}\$ (?!docker )(?:.* )?)earshot(?= [a-z<[-])/gm;

/** Rewrites the commands in a text. For texts for people only: data keeps the plain name. */
export function asCalled(text: string, { env }: Pick<Io, 'env'>): string {
  const name = nameCalled(env);
  return name === 'earshot' ? text : text.replaceAll(commands, () => name);
}

/** Wraps a stream so that the commands in its texts are rewritten. */
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

/** Returns the program's name for a shell in another folder, such as `../earshot`. */
export function nameCalledIn(folder: string, { env, workingDir }: Pick<Io, 'env' | 'workingDir'>) {
  const { earshot_called_as: path } = env;
  if (!path) return 'earshot';
  const program = resolve(workingDir, path);
  const near = relative(folder, program);
  if (near.startsWith('../../')) return shellText(program);
  return shellText(near.includes('/') ? near : `./${near}`);
}

/** Returns how the program was called: the executable of a checkout sets a variable, otherwise it is on the path. */
export function nameCalled({ earshot_called_as: path }: Io['env']): string {
  return path ? shellText(path) : 'earshot';
}
