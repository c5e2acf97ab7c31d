/** The one error type of the program: a closed code, and words that are safe to show to anybody. */

/** Every kind of failure that a caller may act on. Anything else is a bug and counts as internal. */
const errorCodes = [
  'usage', // a command was called with wrong words
  'configuration', // a variable, a file it names, or the data directory is not as it must be
  'invalid', // what was handed over cannot be used as it is
  'unauthorized',
  'not_found',
  'wrong_method',
  'conflict',
  'too_large',
  'unsupported', // a body in an encoding that is not known
  'too_many',
  'unavailable', // cannot be done now; the same call may work later
  'differences', // a check was asked for, and something is not as wanted
  'cancelled', // the user was asked, and said no
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

interface AppErrorOptions {
  /** What to do next, in whole sentences. Words of another service come last. */
  advice?: string | undefined;
  /** Further lines for the reader, one finding each. */
  details?: readonly string[];
  /** What a caller may decide by. Plain data that a thread can send; never a secret. */
  facts?: Readonly<Record<string, unknown>>;
  /** May hold anything, and goes to the log alone. */
  cause?: unknown;
}

type AppErrorChanges = AppErrorOptions & { code: ErrorCode; message: string };

/**
 * A failure: `message` says what happened and why, `advice` what to do next. Neither holds a secret.
 * Show its `text`; decide by its code and facts, never by its words.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly advice: string | undefined;
  readonly details: readonly string[];
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    const { advice, details = [], facts = {} } = options;
    // The stack begins with these words, the advice among them.
    super(withAdvice(message, advice), 'cause' in options ? { cause: options.cause } : undefined);
    this.message = message;
    this.name = 'AppError';
    this.code = code;
    this.advice = advice;
    this.details = details;
    this.facts = facts;
  }

  /** What to show, log or store: the message with the advice. */
  get text(): string {
    return withAdvice(this.message, this.advice);
  }

  override toString(): string {
    return `${this.name}: ${this.text}`;
  }

  /** The same error with some of it changed, for a caller that knows more. */
  with({
    code = this.code,
    message = this.message,
    ...changes
  }: Partial<AppErrorChanges>): AppError {
    const { advice, details, facts, cause } = this;
    return new AppError(code, message, { advice, details, facts, cause, ...changes });
  }
}

/** True for an error of ours, with the given code where one is named. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** The text of an error of ours, the message of another. */
export function errorText(error: unknown): string {
  if (error instanceof AppError) return error.text;
  return error instanceof Error ? error.message : String(error);
}

/** The one way to put the two together, also for errors that are kept or sent as data. */
export function withAdvice(message: string, advice: string | null | undefined): string {
  return advice ? `${message} ${advice}` : message;
}

/** Such as `ENOENT`; `unknown` for an error without a code. It holds no path and no secret. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** Why a file cannot be read, in words that follow a colon. */
export function readFaultOf(error: unknown): string {
  const code = errorCodeOf(error);
  return readFaults[code] ?? `the system says ${code}`;
}

const readFaults: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  ENOTDIR: 'there is no such file',
  EISDIR: 'it is a folder',
  EACCES: 'this user may not read it',
};
