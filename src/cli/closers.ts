/** What has been opened, to be closed in reverse. */

export interface Closers {
  /** Notes how something is closed. */
  add(close: () => Promise<void> | void): void;
  /** Closes everything, last opened first; goes on after a failure and reports the first one. */
  closeAll(): Promise<void>;
}

export function createClosers(): Closers {
  const stack: (() => Promise<void> | void)[] = [];
  return {
    add: (close) => void stack.push(close),
    closeAll: async () => {
      const failures: unknown[] = [];
      for (let close = stack.pop(); close !== undefined; close = stack.pop()) {
        try {
          await close();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
    },
  };
}
