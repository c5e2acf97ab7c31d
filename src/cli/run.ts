/** Runs one command line and tells its exit code: all of the program that a test needs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CommanderError } from 'commander';
import { AppError, type ErrorCode, errorText, isAppError } from '../domain/app-error.ts';
import { printable } from '../domain/text.ts';
import { nameCalledIn, namingCommands } from './called-as.ts';
import type { Io } from './io.ts';
import { createProgram } from './program.ts';

/** `argv` without the program's own name. Never throws: every failure is told on stderr. */
export async function run(argv: readonly string[], plain: Io, version: string): Promise<number> {
  const io = { ...plain, stderr: namingCommands(plain.stderr, plain), logOutput: plain.stderr };
  try {
    const program = await createProgram(io, version, argv);
    if (argv.length === 0) {
      program.outputHelp({ error: true });
      return exitCodes.usage;
    }
    await program.parseAsync(argv, { from: 'user' });
    return exitCodes.done;
  } catch (error) {
    // Help and version are answers, too; commander has printed all of them itself.
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
    }
    io.stderr.write(explain(error));
    if (isAppError(error, 'configuration')) io.stderr.write(environmentHint(io));
    if (isSandboxRefusal(error)) return exitCodes.usage;
    return error instanceof AppError ? exitCodeOf[error.code] : exitCodes.failed;
  }
}

/** Most often, commands miss their settings because they run in another folder. */
function environmentHint(io: Io): string {
  const { workingDir, env } = io;
  const isSet = Object.keys(env).some((name) => name.startsWith('EARSHOT_'));
  if (isSet || existsSync(join(workingDir, '.env'))) return '';
  // npm runs a script in the project's folder, wherever it was called.
  const { INIT_CWD: calledIn = workingDir } = env;
  if (existsSync(join(calledIn, '.env'))) {
    return `There is a file .env in ${printable(calledIn)}, but npm runs its scripts in ${printable(workingDir)}. Use \`${printable(nameCalledIn(calledIn, io))}\` there.\n`;
  }
  return `There is no file .env in ${printable(workingDir)}. \`earshot setup\` writes one; \`earshot setup --sandbox\` starts a trial.\n`;
}

/** Wrong options of the sandbox. By its name, so that only commands with a sandbox load it. */
function isSandboxRefusal(error: unknown): error is Error {
  return error instanceof Error && error.name === 'SandboxConfigurationError';
}

function explain(error: unknown): string {
  if (error instanceof AppError && error.code !== 'internal') {
    // A finding of several lines, as about a filter, keeps them, one below the other.
    const lines = error.details.map((detail) => detail.split('\n').map(printable));
    const details = lines.map((some) => `  - ${some.join('\n    ')}\n`);
    return `earshot: ${printable(errorText(error))}\n${details.join('')}`;
  }
  if (isSandboxRefusal(error)) return `earshot: ${printable(error.message)}\n`;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const cause = error instanceof Error && error.cause !== undefined ? `\n${error.cause}` : '';
  const lines = `${text}${cause}`.split('\n').map(printable);
  return `earshot: this is a fault of the program; please report it.\n${lines.join('\n')}\n`;
}

const exitCodes = {
  done: 0,
  failed: 1,
  /** Wrong usage or configuration: the same call can never work. */
  usage: 2,
  /** `--check` has found that something is not as wanted. */
  differences: 3,
} as const;

export const exitCodeOf: Record<ErrorCode, number> = {
  usage: exitCodes.usage,
  configuration: exitCodes.usage,
  invalid: exitCodes.failed,
  unauthorized: exitCodes.failed,
  not_found: exitCodes.failed,
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
