/** Hands items over to a program: one start for each, the document on its standard input. */
import { z } from 'zod';
import { errorCodeOf } from '../domain/app-error.ts';
import { printable } from '../domain/text.ts';
import type { ProgramEnd } from '../host/run-program.ts';
import { foreignText, hintCharactersMax } from '../http/foreign-text.ts';
import { defineSinkKind, type TargetAnswer, unavailable } from './target.ts';

/** `EX_TEMPFAIL` of sysexits.h: the program asks to be started again later. */
const tryLater = 75;

const commandForm = "must be a list, such as ['node', 'act.js']";

/** The program gets one line: the document, and a line feed. Exit code 0 acknowledges it. */
export const command = defineSinkKind({
  fields: {
    /** A program and its arguments, started for each item, which it gets as JSON on its standard input. */
    command: z
      .array(z.string("must be a text, such as 'act.js'"), commandForm)
      .refine(([program = '']) => program !== '', 'name a program')
      .optional(),
  },
  concurrency: 2,
  settings: ({ command = [] }) => ({ command: command as readonly string[] }),
  open: ({ command }, { run, timeoutMs, name: sink, logger }) => ({
    deliver: async (item, signal) => {
      // Outside of the `try`: a document that cannot be written is no fault of the program.
      const line = `${JSON.stringify(item)}\n`;
      try {
        const end = await run(command, line, { timeoutMs, signal });
        const [stdout, stderr] = [end.stdout.trimEnd(), end.stderr.trimEnd()];
        if (stdout !== '' || stderr !== '') {
          logger.info({ sink, id: item.id, stdout, stderr }, 'output of a command sink');
        }
        return answerOf({ ...end, timedOut: end.timedOut || signal.aborted });
      } catch (error) {
        return cannotStart(command[0] ?? '', error);
      }
    },
    close: async () => undefined,
  }),
  check: async ({ command: [program = ''] }, { findProgram }) => {
    const fault = findProgram(program);
    if (fault === null) return { state: 'pass', message: `${program} is there, and may be run.` };
    return {
      state: 'fail',
      message: `${program} cannot be run: ${fault}.`,
      advice: 'Name the program by its whole path, and make it executable: chmod +x.',
    };
  },
});

function answerOf({ exitCode, signal, timedOut, stderr }: ProgramEnd): TargetAnswer {
  // The last line says what went wrong, those above how it came to that.
  const lastLine = stderr.trimEnd().split('\n').at(-1) ?? '';
  const words = foreignText(lastLine, { secrets: [], charactersMax: hintCharactersMax });
  const said = words === '' ? '' : `: ${words}`;
  if (timedOut) return unavailable(`it did not end in time${said}`);
  if (exitCode === 0) return { kind: 'taken' };
  if (exitCode === tryLater) return unavailable(`it asks to be tried later (exit code 75)${said}`);
  if (exitCode !== null)
    return { kind: 'refused', reason: `it ended with exit code ${exitCode}${said}` };
  // Ended from outside, such as for want of memory.
  return unavailable(`it was ended by ${signal ?? 'a signal'}${said}`);
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
