/** The error type of the program: a code from a fixed list, and a message that is safe to show to anybody. */

/** Failures that a caller can act on, with their meaning. Anything else is a bug and counts as `internal`. */
export const errorMeanings = {
  usage: 'The arguments of the command are wrong.',
  configuration: 'A variable, a file that it names, or the data directory is invalid.',
  invalid: 'The input cannot be used.',
  unauthorized: 'A login failed, or is missing.',
  not_found: 'There is no such thing.',
  wrong_method: 'This address does not support the HTTP method.',
  conflict: 'Another program, or the present state, prevents this.',
  too_large: 'The input is too large.',
  unsupported: 'The Content-Encoding or media type is not supported.',
  too_many: 'There are too many requests, or too many things of this kind.',
  unavailable: 'This is not possible now. The same call may work later.',
  differences: 'A check found differences from the desired state.',
  cancelled: 'The user declined or interrupted this.',
  internal: 'This is a bug. Please report it.',
} as const;

export type ErrorCode = keyof typeof errorMeanings;

interface AppErrorOptions {
  /** Next step, in whole sentences. Text from another service comes last. */
  advice?: string | undefined;
  /** Further lines, one finding each. */
  details?: readonly string[];
  /** Data for decisions of the caller. Plain values that can be sent between threads; never a secret. */
  facts?: Readonly<Record<string, unknown>>;
  /** May contain anything, so it is only logged. */
  cause?: unknown;
}

type AppErrorChanges = AppErrorOptions & { code: ErrorCode; message: string };

/**
 * A failure: `message` states what happened and why, `advice` what to do next. Neither contains a secret. Show
 * `text`; base decisions on the code and the facts, never on the text.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  readonly advice: string | undefined;
  readonly details: readonly string[];
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    const { advice, details = [], facts = {} } = options;
    // The stack starts with this text, including the advice.
    super(withAdvice(message, advice), 'cause' in options ? { cause: options.cause } : undefined);
    this.message = message;
    this.name = 'AppError';
    this.code = code;
    this.advice = advice;
    this.details = details;
    this.facts = facts;
  }

  /** Message and advice, to be shown, logged or stored. */
  get text(): string {
    return withAdvice(this.message, this.advice);
  }

  override toString(): string {
    return `${this.name}: ${this.text}`;
  }

  /** Returns a copy with changes, for a caller that knows more. */
  with({
    code = this.code,
    message = this.message,
    ...changes
  }: Partial<AppErrorChanges>): AppError {
    const { advice, details, facts, cause } = this;
    return new AppError(code, message, { advice, details, facts, cause, ...changes });
  }
}

/** Returns true for an `AppError`, with the given code if any. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}

/** Returns the text of an `AppError`, or the message of another error. */
export function errorText(error: unknown): string {
  if (error instanceof AppError) return error.text;
  return error instanceof Error ? error.message : String(error);
}

/** Joins a message and its advice, also for errors that are stored or sent as data. */
export function withAdvice(message: string, advice: string | null | undefined): string {
  return advice ? `${message} ${advice}` : message;
}

/** Returns the code of a system error (`ENOENT`), or `unknown`. Contains no path and no secret. */
export function errorCodeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}
