/** Findings of `earshot doctor`: evaluations by subject. */
import { AppError, type ErrorCode } from './app-error.ts';
import { type Evaluation, evaluation } from './evaluation.ts';

export interface Finding extends Evaluation {
  /** Subject of the check, in one to four words. */
  check: string;
  /** Code of the error that a check ended with; `configuration` if the settings cause it. */
  code?: ErrorCode;
}

/** Runs a check. Never throws for what it finds. */
export type Check = () => Promise<Finding[]>;

/** Returns a finding. */
export function finding(check: string, ...args: Parameters<typeof evaluation>): Finding {
  return { check, ...evaluation(...args) };
}

/**
 * Converts an error to a critical finding. `nextStep` is the default for errors without advice. Of an error that is not
 * an `AppError`, only the type is reported: its text may contain anything.
 */
export function failedFinding(check: string, error: unknown, nextStep: string): Finding {
  if (!(error instanceof AppError) || error.code === 'internal') {
    const kind = error instanceof Error ? error.name : typeof error;
    return finding(
      check,
      'critical',
      `Internal error in this check (${kind}).`,
      'Please report it.',
    );
  }
  const { message, advice = nextStep, details, code } = error;
  return { ...finding(check, 'critical', message, advice, ...details), code };
}
