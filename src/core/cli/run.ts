/** Runs one command line and returns its exit code. Tests call this instead of a process. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { AppError, type ErrorCode, errorText, isAppError } from '../terms/app-error.ts';
import { printable } from '../terms/text.ts';
import { nameCalledIn, namingCommands } from './called-as.ts';
import type { Io } from './io.ts';
import { createProgram } from './program.ts';

/** Runs `argv` (without the program's name). Never throws: prints every failure to stderr. */
export async function run(argv: readonly string[], plain: Io, version: string): Promise<number> {
  const io = { ...plain, stderr: namingCommands(plain.stderr, plain) };
  try {
    const program = await createProgram(io, version, argv);
    if (argv.length === 0) {
      program.outputHelp({ error: true });
      return exitCodes.usage;
    }
    await program.parseAsync(argv, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // commander has already printed help, version and usage errors.
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    }
    io.stderr.write(explain(error));
    if (isAppError(error, 'configuration')) io.stderr.write(environmentHint(io, argv));
    if (isSandboxRefusal(error)) return exitCodes.usage;
    return error instanceof AppError ? exitCodeOf[error.code] : exitCodes.failed;
  }
}

/** Returns a hint for the most frequent cause of missing settings: another working folder. */
function environmentHint(io: Io, [name]: readonly string[]): string {
  const { workingDir, env } = io;
  const isSet = Object.keys(env).some((name) => name.startsWith('EARSHOT_'));
  if (isSet || existsSync(join(workingDir, '.env'))) return '';
  // npm runs a script in the project's folder, not in the caller's.
  const { INIT_CWD: calledIn = workingDir } = env;
  if (existsSync(join(calledIn, '.env'))) {
    return `npm runs its scripts in ${printable(workingDir)}, but the file .env is in ${printable(calledIn)}. In the folder of .env, use \`${printable(nameCalledIn(calledIn, io))}\`.\n`;
  }
  // These have already printed how to set up the folder.
  if (name === 'status' || name === 'doctor') return '';
  return `There is no file .env in ${printable(workingDir)}. To write one: \`earshot setup\`. To try earshot without an account: \`earshot demo\`.\n`;
}

/** Recognizes invalid options of the sandbox by name, so that other commands do not load the sandbox. */
function isSandboxRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SandboxConfigurationError';
}

function explain(error: unknown): string {
  if (error instanceof AppError && error.code !== 'internal') {
    // Details can have several lines, such as findings of a filter.
    const lines = error.details.map((detail) => detail.split('\n').map(printable));
    const details = lines.map((some) => `  - ${some.join('\n    ')}\n`);
    return `earshot: ${printable(errorText(error))}\n${details.join('')}`;
  }
  if (isSandboxRefusal(error)) return `earshot: ${printable(error.message)}\n`;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const cause = error instanceof Error && error.cause !== undefined ? `\n${error.cause}` : '';
  const lines = `${text}${cause}`.split('\n').map(printable);
  return `earshot: Internal error. Please report this error with the following text:\n${lines.join('\n')}\n`;
}

const exitCodes = {
  done: 0,
  failed: 1,
  /** Wrong usage or configuration: the same call can never work. */
  usage: 2,
  /** `--check` found differences. */
  differences: 3,
} as const;

export const exitCodeOf: Record<ErrorCode, number> = {
  usage: exitCodes.usage,
  configuration: exitCodes.usage,
  invalid: exitCodes.failed,
  unauthorized: exitCodes.failed,
  not_found: exitCodes.usage,
  wrong_method: exitCodes.failed,
  conflict: exitCodes.failed,
  too_large: exitCodes.failed,
  unsupported: exitCodes.failed,
  too_many: exitCodes.failed,
  unavailable: exitCodes.failed,
  differences: exitCodes.differences,
  cancelled: exitCodes.failed,
  internal: exitCodes.failed,
};
