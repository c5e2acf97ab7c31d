/** The error for a sandbox that was told to do something it will not or cannot do. */

/** Thrown before anything is started; the message says what is wrong and what to do about it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}
