/** Turns an error that a check met into a finding. */
import { AppError } from './app-error.ts';
import type { Finding } from './finding.ts';

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
  const words = splitAdvice(error.message);
  const message = [words.message, ...error.details].join(' ');
  return { check, state: 'fail', message, advice: words.advice || advice };
}

/** Our texts say in their first sentence what happened, then what to do, which may be missing. */
export function splitAdvice(text: string): { message: string; advice: string } {
  const [, message = text, advice = ''] = /^(.*?\.) (?=\S)(.*)$/s.exec(text) ?? [];
  return { message, advice };
}
