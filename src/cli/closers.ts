/** What has been opened, to be closed in reverse. */

export interface Closers {
  /** Registers how a part is closed. */
  add(close: () => Promise<void> | void, name?: string): void;
  /** Closes everything, last opened first; continues after a failure and reports the first one. */
  closeAll(): Promise<void>;
  /** Names of the parts that are not closed yet, last opened first. */
  open(): string[];
}

export function createClosers(): Closers {
  const stack: { name: string; close: () => Promise<void> | void }[] = [];
  return {
    add: (close, name = 'a part without a name') => void stack.push({ name, close }),
    closeAll: async () => {
      const failures: unknown[] = [];
      for (let part = stack.at(-1); part !== undefined; part = stack.at(-1)) {
        try {
          await part.close();
        } catch (error) {
          failures.push(error);
        }
        stack.splice(stack.indexOf(part), 1);
      }
      if (failures.length > 0) throw failures[0];
    },
    open: () => stack.map(({ name }) => name).reverse(),
  };
}
