/** One line that says what is going on, on a terminal only. */

/** The line. */
export interface Progress {
  /** Replaces the line. */
  show(text: string): void;
  /** Removes the line, before anything else is printed. */
  clear(): void;
}

/** Creates the line on `stream`; silent when that is not a terminal. */
export function createProgress(stream: NodeJS.WritableStream): Progress {
  const isTerminal = 'isTTY' in stream && stream.isTTY === true;
  const write = (text: string) => {
    if (isTerminal) stream.write(`\r\u001b[2K${text}`);
  };
  return { show: write, clear: () => write('') };
}
