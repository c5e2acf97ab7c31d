/** Delivers items to a program: starts it for each item or batch, with one message per line on its standard input. */
import { z } from 'zod';
import type { ProgramEnd } from '../../../core/host/run-program.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/service-error.ts';
import { errorCodeOf } from '../../../core/terms/app-error.ts';
import { evaluation, ok } from '../../../core/terms/evaluation.ts';
import { printable } from '../../../core/terms/text.ts';
import type { Message } from '../../messages/formats.ts';
import { defineSinkKind, type TargetAnswer, unavailable } from '../target.ts';

/** `EX_TEMPFAIL` of sysexits.h: the program requests a retry. */
const temporaryFailure = 75;

const commandForm = "must be a list, such as ['node', 'act.js']";

/** Exit code 0 acknowledges all lines. */
export const command = defineSinkKind({
  fields: {
    /** Program and arguments, started for each item, with the item as JSON on its standard input. */
    command: z
      .array(z.string("must be a string, such as 'act.js'"), commandForm)
      .refine(([program = '']) => program !== '', 'must name a program')
      .optional(),
  },
  batches: true,
  concurrency: 2,
  settings: ({ command = [] }) => ({ command: command as readonly string[] }),
  open: ({ command }, { run, timeoutMs, name: sink, logger }) => {
    const start = async (items: readonly Message[], signal: AbortSignal) => {
      const lines = items.map(({ text }) => `${text}\n`).join('');
      try {
        const end = await run(command, lines, { timeoutMs, signal });
        const [stdout, stderr] = [end.stdout.trimEnd(), end.stderr.trimEnd()];
        if (stdout !== '' || stderr !== '') {
          const id = items[0]?.document.id;
          logger.info({ sink, id, stdout, stderr }, 'output of a command sink');
        }
        return answerOf({ ...end, timedOut: end.timedOut || signal.aborted });
      } catch (error) {
        return cannotStart(command[0] ?? '', error);
      }
    };
    return {
      deliver: (item, signal) => start([item], signal),
      deliverBatch: start,
      close: async () => undefined,
    };
  },
  check: async ({ command: [program = ''] }, { findProgram }) => {
    const fault = findProgram(program);
    if (fault === null) return ok(`${program} exists and is executable.`);
    const nextStep = 'Specify the full path of the program, and make it executable: chmod +x.';
    return evaluation('critical', `${program} cannot be run: ${fault}.`, nextStep);
  },
});

function answerOf({ exitCode, signal, timedOut, stderr }: ProgramEnd): TargetAnswer {
  // The last line of an error output usually has the error; Node adds its version, and programs the place.
  const lines = stderr
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^Node\.js v/.test(line));
  const lastLine = lines.findLast((line) => /^\S*Error\b/.test(line)) ?? lines.at(-1) ?? '';
  const text = foreignText(lastLine, { secrets: [], charactersMax: hintCharactersMax });
  const detail = text === '' ? '' : `: ${text}`;
  if (timedOut) return unavailable(`it did not end in time${detail}`);
  if (exitCode === 0) return { kind: 'acknowledged' };
  if (exitCode === temporaryFailure)
    return unavailable(`it requested a retry (exit code 75)${detail}`);
  if (exitCode !== null)
    return { kind: 'refused', reason: `it ended with exit code ${exitCode}${detail}` };
  // Killed by another process or the system, for example when memory is short.
  return unavailable(`it was killed by ${signal ?? 'a signal'}${detail}`);
}

function cannotStart(program: string, error: unknown): TargetAnswer {
  const code = errorCodeOf(error);
  const name = printable(program);
  // Temporary: too many processes or open files, or too little memory.
  if (!['ENOENT', 'EACCES', 'ENOEXEC', 'ENOTDIR', 'EPERM'].includes(code)) {
    return unavailable(`${name} cannot be started (${code})`);
  }
  const reason = `${name} cannot be started (${code}): check that it exists and is executable`;
  return { kind: 'misconfigured', reason };
}
