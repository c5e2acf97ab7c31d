/** Writes changes of several kinds, each by a function of its own. */

/** Works inside a transaction of the caller's. */
export interface ChangeWriter<Change extends AnyChange> {
  /** Returns what the port's call of that name resolves with. */
  write(change: Change): unknown;
}

interface AnyChange {
  kind: string;
  options: unknown;
}

type WriteEach<Change extends AnyChange> = {
  [Kind in Change['kind']]: (options: Extract<Change, { kind: Kind }>['options']) => unknown;
};

export function createChangeWriter<Change extends AnyChange>(
  writeEach: WriteEach<Change>,
): ChangeWriter<Change> {
  return {
    write: ({ kind, options }) => {
      // That of this kind takes the options of this kind, which the compiler cannot follow here.
      const write = writeEach[kind as Change['kind']] as (options: Change['options']) => unknown;
      return write(options);
    },
  };
}
