/** Names commands in texts for people as the user calls them: `npx --no -- earshot status`, `earshot status`. */
import { join, relative, resolve } from 'node:path';
import type { Io, Output } from './io.ts';

/** A command stands in backticks, in the usage line, or in an example; the name alone is the program's. */
const commands = /(?<=`|^Usage: |^ {0,2}\$ (?:.* )?)earshot(?= [a-z<[-])/gm;

/** The text with the commands in it as they are called here. For people only: data keeps the plain name. */
export function asCalled(text: string, { env }: Pick<Io, 'env'>): string {
  const name = nameCalled(env);
  return name === 'earshot' ? text : text.replaceAll(commands, () => name);
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

/**
 * The program's name for a shell in another folder. A script of a checkout would run in the checkout's own folder, and
 * a relative path lead elsewhere.
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

/** Relative from the checkout or a folder in it, such as `../bin/earshot`. */
function pathFrom(folder: string, program: string): string {
  const path = relative(folder, program);
  return path.startsWith('../../') ? program : path;
}

/** npm says in the environment how it starts a program, and so does `bin/earshot`; else the program is on the path. */
function nameCalled(env: Io['env']): string {
  const { npm_command: npm, npm_package_name: project, earshot_called_as: path } = env;
  if (path !== undefined && path !== '') return path;
  if (npm === undefined) return 'earshot';
  if (npm !== 'exec' && project === 'earshot') return 'npm run -s earshot --';
  // With --no, npx never runs a package of this name from a registry; without --, it takes --help for itself.
  return 'npx --no -- earshot';
}
