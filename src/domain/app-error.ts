/** The one error type of the program: a closed code, and words that are safe to show to anybody. */

/** Every kind of failure that a caller may act on. Anything else is a bug and counts as internal. */
export const errorCodes = [
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

/**
 * A failure with a message for its reader: what happened, why, and what to do next.
 * The message never holds a secret; `cause` may hold anything and goes to the log alone.
 */
export class AppError extends Error {
  readonly code: ErrorCode;
  /** Further lines for the reader, one finding each. */
  readonly details: readonly string[];
  /** The same as data, for a caller that acts on it. */
  readonly facts: Readonly<Record<string, unknown>>;

  constructor(
    code: ErrorCode,
    message: string,
    options: {
      cause?: unknown;
      details?: readonly string[];
      facts?: Readonly<Record<string, unknown>>;
    } = {},
  ) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.name = 'AppError';
    this.code = code;
    this.details = options.details ?? [];
    this.facts = options.facts ?? {};
  }
}

/** True for an error of ours, with the given code where one is named. */
export function isAppError(error: unknown, code?: ErrorCode): error is AppError {
  return error instanceof AppError && (code === undefined || error.code === code);
}
