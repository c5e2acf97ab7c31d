/** Findings of `earshot doctor`. */
import { AppError, type ErrorCode } from './app-error.ts';

export const findingStates = ['pass', 'warn', 'fail', 'skipped'] as const;

export interface Finding {
  /** Subject of the check, in one to four words. */
  check: string;
  state: (typeof findingStates)[number];
  /** Result, in one sentence. */
  message: string;
  /** Next step; present for every `warn` and `fail`. */
  advice?: string;
  /** Code of the error that a check ended with. */
  code?: ErrorCode;
}

/** Runs a check. Never throws for what it finds. */
export type Check = () => Promise<Finding[]>;

/**
 * Converts an error to a `fail`, with its message and advice. `advice` is the default for errors without one. Of an
 * error that is not an `AppError`, only the type is reported: its text may contain anything.
 */
export function failedFinding(check: string, error: unknown, advice: string): Finding {
  if (!(error instanceof AppError) || error.code === 'internal') {
    const kind = error instanceof Error ? error.name : typeof error;
    const message = `Internal error in this check (${kind}).`;
    return { check, state: 'fail', message, advice: 'Please report it.' };
  }
  const message = [error.message, ...error.details].join(' ');
  return { check, state: 'fail', message, advice: error.advice ?? advice, code: error.code };
}

/** Runs a check with one finding: `pass` with the returned message, or `fail` with the error, as `failedFinding`. */
export async function findingOf(
  check: string,
  advice: string,
  run: () => Promise<string>,
): Promise<Finding[]> {
  try {
    return [{ check, state: 'pass', message: await run() }];
  } catch (error) {
    return [failedFinding(check, error, advice)];
  }
}
