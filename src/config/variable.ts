/** What one row of the table of variables says. */
import type { z } from 'zod';

/** The schema reads the variable's text; `default` is a text too. */
export interface Variable {
  name: `EARSHOT_${string}`;
  schema: z.ZodType;
  default?: string;
  /** May also be given as a file, named by the variable with `_FILE` appended. */
  secret?: true;
  /** One or two sentences for `docs/configuration.md`. */
  description: string;
  /** A value as a user would write it. */
  example: string;
}

/** Checks the form of a row and keeps its exact type. */
export const variable = <const Row extends Variable>(row: Row) => row;
