/** Tells alerts to a command of the user's: the message as JSON on its standard input. */
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import type { RunProgram } from '../../domain/run-program.ts';
import { foreignText, hintCharactersMax } from '../../http/foreign-text.ts';
import { type Teller, tellTimeoutMs } from './tell-through.ts';

/** Exit code 0 means that it was taken. `variable` holds the command, for the words of errors. */
export function createCommandTeller(options: {
  command: readonly string[];
  run: RunProgram;
  variable: string;
}): Teller {
  const { command, run, variable } = options;
  return async (message, signal) => {
    const line = `${JSON.stringify(message)}\n`;
    const limits = { timeoutMs: tellTimeoutMs, signal };
    const { exitCode, stderr } = await run(command, line, limits).catch((error: unknown) => {
      throw cannotStart(error, variable);
    });
    if (exitCode === 0) return;
    const words = foreignText(stderr, { secrets: [], charactersMax: hintCharactersMax });
    const said = words === '' ? '' : `, saying: ${words}`;
    const end = exitCode === null ? 'did not end in time' : `ended with ${exitCode}`;
    throw new AppError('unavailable', `The command that alerts are told to ${end}${said}.`, {
      advice: `Check ${variable}.`,
    });
  };
}

/** Of Node's error the code alone is told, such as ENOENT. */
function cannotStart(error: unknown, variable: string): AppError {
  const message = `The command that alerts are told to cannot be started (${errorCodeOf(error)}).`;
  const advice = `Check ${variable}: the program must be there, and executable.`;
  return new AppError('unavailable', message, { advice, cause: error });
}
