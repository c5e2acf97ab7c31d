/** The program's log: JSON lines for machines, short lines for a person at a terminal. */
import { format } from 'node:util';
import { type Logger as PinoLogger, pino, stdSerializers } from 'pino';
import { AppError, errorText } from '../terms/app-error.ts';
import { printable } from '../terms/text.ts';
import type { Io, Output } from './io.ts';
import { painter } from './output.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Writes to stderr. Errors are logged with their stack and causes; header values never are. */
export function createLogger(
  { stderr: output, env }: Pick<Io, 'stderr' | 'env'>,
  level: LogLevel,
): PinoLogger {
  const destination = {
    write: (line: string) => void output.write(output.isTTY ? forPeople(output, env, line) : line),
  };
  return pino(
    {
      ...{ level, base: null, timestamp: pino.stdTimeFunctions.isoTime },
      formatters: { level: (level) => ({ level }) },
      serializers: { err: serializeError },
    },
    destination,
  );
}

const consoleMethods = ['debug', 'error', 'info', 'log', 'trace', 'warn'] as const;

/**
 * Passes what libraries write with `console` to `write`: the client of NATS prints errors with text of the server.
 * Returns a function that ends this.
 */
export function captureConsole(write: (text: string) => void): () => void {
  const { console: target } = globalThis;
  const own = { ...target };
  for (const name of consoleMethods) target[name] = (...parts) => write(format(...parts));
  return () => void Object.assign(target, own);
}

/** Serializes an error. The message of an AppError includes its advice. */
function serializeError(error: unknown): unknown {
  if (!(error instanceof AppError))
    return error instanceof Error ? stdSerializers.err(error) : error;
  const { advice: _advice, facts: _facts, ...fields } = stdSerializers.err(error);
  const causes = fields.message.slice(error.message.length);
  return { ...fields, message: `${errorText(error)}${causes}` };
}

/** Formats a line for a terminal: `06:00:00 warn  login failed  address=127.0.0.1` */
function forPeople(output: Output, env: Io['env'], line: string): string {
  const { level, time, msg, err, ...fields } = JSON.parse(line) as Record<string, unknown>;
  const paint = painter({ env }, output);
  const colour = level === 'error' ? 'red' : level === 'warn' ? 'yellow' : 'cyan';
  const rest = Object.entries(fields).map(([key, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${key}=${printable(text)}`;
  });
  const reason =
    typeof err === 'object' && err !== null && 'message' in err
      ? `\n         ${printable(String(err.message))}`
      : '';
  const head = `${paint('dim', String(time).slice(11, 19))} ${paint(colour, String(level).padEnd(5))}`;
  return `${head} ${printable(String(msg))}  ${paint('dim', rest.join(' '))}${reason}\n`;
}
