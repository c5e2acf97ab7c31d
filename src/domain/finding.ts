/** What a check of the doctor has found. */

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
