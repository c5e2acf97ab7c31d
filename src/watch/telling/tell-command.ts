/** Tells alerts to a command of the user's: the message as JSON on its standard input. */
import { AppError } from '../../domain/app-error.ts';
import { foreignText, hintCharactersMax } from '../../http/foreign-text.ts';
import { type Teller, tellTimeoutMs } from './tell-through.ts';

/** What became of a command. */
export interface CommandEnd {
  /** Null when it was ended from outside, as after the timeout. */
  exitCode: number | null;
  /** The end of what it wrote to standard error. */
  errorText: string;
}

/** Runs the command, and ends it after the timeout or when the signal is aborted. Rejects when it cannot be run. */
export type RunCommand = (
  input: string,
  options: { timeoutMs: number; signal: AbortSignal },
) => Promise<CommandEnd>;

/** Exit code 0 means that it was taken. `variable` holds the command, for the words of errors. */
export function createCommandTeller(options: {
  run: RunCommand;
  variable: string;
  timeoutMs?: number;
}): Teller {
  const { run, variable, timeoutMs = tellTimeoutMs } = options;
  return async (message, signal) => {
    const { exitCode, errorText } = await run(`${JSON.stringify(message)}\n`, {
      timeoutMs,
      signal,
    }).catch((error: unknown) => {
      throw cannotStart(error, variable);
    });
    if (exitCode === 0) return;
    const words = foreignText(errorText, { secrets: [], charactersMax: hintCharactersMax });
    const said = words === '' ? '' : `, saying: ${words}`;
    const end = exitCode === null ? 'did not end in time' : `ended with ${exitCode}`;
    throw new AppError(
      'unavailable',
      `The command that alerts are told to ${end}${said}. Check ${variable}.`,
    );
  };
}

/** Of Node's error the code alone is told, such as ENOENT. */
function cannotStart(error: unknown, variable: string): AppError {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  const message = `The command that alerts are told to cannot be started (${code}). Check ${variable}: the program must be there, and executable.`;
  return new AppError('unavailable', message, { cause: error });
}
