/** Hands items over to a program: one start for each, the document on its standard input. */
import { errorCodeOf } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import type { SinkTarget } from '../domain/sinks.ts';
import { printable } from '../domain/text.ts';
import type { ProgramEnd, RunProgram } from '../host/run-program.ts';
import { foreignText, hintCharactersMax } from '../http/foreign-text.ts';
import type { Target, TargetAnswer } from './sink.ts';

/** `EX_TEMPFAIL` of sysexits.h: the program asks to be started again later. */
const tryLater = 75;

/** The program gets one line: the document, and a line feed. It has taken it when it ends with exit code 0. */
export function createCommandTarget(
  { command }: Extract<SinkTarget, { kind: 'command' }>,
  means: { run: RunProgram; timeoutMs: number; name: string; logger: Pick<Logger, 'info'> },
): Target {
  const { run, timeoutMs, name: sink, logger } = means;
  const logOutput = (id: string, output: Pick<ProgramEnd, 'stdout' | 'stderr'>) => {
    const [stdout, stderr] = [output.stdout.trimEnd(), output.stderr.trimEnd()];
    if (stdout === '' && stderr === '') return;
    logger.info({ sink, id, stdout, stderr }, 'output of a command sink');
  };
  return {
    handOver: async (item, signal) => {
      // Outside of the `try`: a document that cannot be written is no fault of the program.
      const line = `${JSON.stringify(item)}\n`;
      try {
        const end = await run(command, line, { timeoutMs, signal });
        logOutput(item.id, end);
        return answerOf({ ...end, timedOut: end.timedOut || signal.aborted });
      } catch (error) {
        return cannotStart(command[0] ?? '', error);
      }
    },
    close: async () => undefined,
  };
}

function answerOf({ exitCode, signal, timedOut, stderr }: ProgramEnd): TargetAnswer {
  const words = foreignText(lastLine(stderr), { secrets: [], charactersMax: hintCharactersMax });
  const said = words === '' ? '' : `: ${words}`;
  if (timedOut) return unavailable(`it did not end in time${said}`);
  if (exitCode === 0) return { kind: 'taken' };
  if (exitCode === tryLater) return unavailable(`it asks to be tried later (exit code 75)${said}`);
  if (exitCode !== null)
    return { kind: 'refused', reason: `it ended with exit code ${exitCode}${said}` };
  // Ended from outside, such as for want of memory.
  return unavailable(`it was ended by ${signal ?? 'a signal'}${said}`);
}

function unavailable(reason: string): TargetAnswer {
  return { kind: 'unavailable', reason, retryAfterMs: null };
}

/** The last one says what went wrong, above it stands how it came to that. */
function lastLine(text: string): string {
  return text.trimEnd().split('\n').at(-1) ?? '';
}

function cannotStart(program: string, error: unknown): TargetAnswer {
  const code = errorCodeOf(error);
  const name = printable(program);
  // Too many processes or files, or too little memory, which passes.
  if (!['ENOENT', 'EACCES', 'ENOEXEC', 'ENOTDIR', 'EPERM'].includes(code)) {
    return unavailable(`${name} cannot be started (${code})`);
  }
  const reason = `${name} cannot be started (${code}): see that it is there and may be run`;
  return { kind: 'misconfigured', reason };
}
