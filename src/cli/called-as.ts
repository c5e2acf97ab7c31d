/** Rewrites commands in texts to the form in which the user called earshot, as `npx --no -- earshot status`. */
import { join, relative, resolve } from 'node:path';
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

/**
 * Returns the program's name for a shell in another folder: npm would run a script of a checkout in the checkout's own
 * folder, and a relative path would not match.
 */
export function nameCalledIn(folder: string, { env, workingDir }: Pick<Io, 'env' | 'workingDir'>) {
  const name = nameCalled(env);
  const { npm_config_local_prefix: root, npm_package_name: project } = env;
  if (!name.startsWith('np')) {
    return name.includes('/') ? pathFrom(folder, resolve(workingDir, name)) : name;
  }
  if (root === undefined) return name;
  if (project === 'earshot') return pathFrom(folder, join(root, 'bin/earshot'));
  const isInside = !relative(root, folder).startsWith('..');
  return isInside ? name : join(root, 'node_modules/.bin/earshot');
}

/** Returns a relative path if it goes up one folder at most, such as `../bin/earshot`. */
function pathFrom(folder: string, program: string): string {
  const path = relative(folder, program);
  return path.startsWith('../../') ? program : path;
}

/** Returns how the program was called: npm and `bin/earshot` set variables, otherwise it is on the path. */
export function nameCalled(env: Io['env']): string {
  const { npm_command: npm, npm_package_name: project, earshot_called_as: path } = env;
  if (path !== undefined && path !== '') return path;
  if (npm === undefined) return 'earshot';
  if (npm !== 'exec' && project === 'earshot') return 'npm run -s earshot --';
  // --no: npx never downloads a package of this name. --: npx does not interpret --help itself.
  return 'npx --no -- earshot';
}
