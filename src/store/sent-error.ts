/** Carries errors between the store's threads. */
import { AppError } from '../domain/app-error.ts';
import type { SentError } from './messages.ts';
import { storeError } from './sqlite-error.ts';

export function sentError(error: unknown): SentError {
  const { code, message, advice, details, facts } = storeError(error);
  return {
    code,
    message,
    advice,
    details,
    facts,
    cause: error instanceof Error ? (error.stack ?? error.message) : String(error),
  };
}

export function receivedError({ code, message, ...options }: SentError): AppError {
  return new AppError(code, message, options);
}
