/** What a check of the doctor has found. */
import { AppError } from './app-error.ts';

export const findingStates = ['pass', 'warn', 'fail', 'skipped'] as const;

export interface Finding {
  /** What was looked at, in one to four words. */
  check: string;
  state: (typeof findingStates)[number];
  /** What was found, in one sentence. */
  message: string;
  /** What to do about it; there for every `warn` and `fail`. */
  advice?: string;
}

/** Looks, and reports; never throws for what it finds. */
export type Check = () => Promise<Finding[]>;

/**
 * A `fail` in the error's own words: what happened as message, what to do as advice. `advice` is for
 * errors that give none. Of an error that is not ours only the kind is told: its text may hold anything.
 */
export function failedFinding(check: string, error: unknown, advice: string): Finding {
  if (!(error instanceof AppError) || error.code === 'internal') {
    const kind = error instanceof Error ? error.name : typeof error;
    const message = `This check failed in a way it should not (${kind}).`;
    return { check, state: 'fail', message, advice: 'Please report it.' };
  }
  const message = [error.message, ...error.details].join(' ');
  return { check, state: 'fail', message, advice: error.advice ?? advice };
}
