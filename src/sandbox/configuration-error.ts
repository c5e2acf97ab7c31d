/** The error for a configuration that the sandbox refuses or cannot carry out, and the faults that schemas find. */
import type { z } from 'zod';

/** Thrown before anything is started; the message says what is wrong and what to do about it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}

/** Names each fault; `whole` is the place of a fault of the value itself. */
export function describeFaults({ issues }: z.ZodError, whole = ''): string {
  const faults = issues.map(({ path, message }) => {
    const place = path.length === 0 ? whole : path.join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  return faults.join('; ');
}
