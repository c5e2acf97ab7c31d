/** Running a program of the user's, as sinks and alerts ask for it. */

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  /** Such as `SIGKILL`; null when it ended by itself. */
  signal: string | null;
  /** Whether its time was up. */
  timedOut: boolean;
  /** The last 4,096 characters of its standard output. */
  stdout: string;
  /** The last 4,096 characters of its standard error. */
  stderr: string;
}

/**
 * Runs a program, without a shell, and gives it a text on its standard input. When the time is up or the signal
 * is aborted, it and the programs that it started are ended; resolves after that. Rejects when it cannot be
 * started, with Node's error.
 */
export type RunProgram = (
  command: readonly string[],
  stdin: string,
  options: { timeoutMs: number; signal: AbortSignal },
) => Promise<ProgramEnd>;
