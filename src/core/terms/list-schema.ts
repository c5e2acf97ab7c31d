/** Schema of lists that reports the first invalid item only. */
import { z } from 'zod';

type RawIssue = z.core.$ZodRawIssue;

interface ListLimits {
  /** Minimum and maximum length. */
  min?: number;
  max?: number;
  /** Message for a longer list. */
  tooLong?: string;
}

/**
 * Returns the schema of a list. `z.array` collects the faults of all items, which takes seconds for a list of thousands;
 * this schema checks the length first, and stops at the first invalid item.
 */
export function listSchema<Item extends z.ZodType>(
  item: Item,
  { min = 0, max = Number.POSITIVE_INFINITY, tooLong }: ListLimits = {},
) {
  const list = z.array(z.unknown()).min(min).max(max, tooLong);
  return list.transform((values, context) => {
    const read: z.output<Item>[] = [];
    for (const [i, value] of values.entries()) {
      const { success, data, error } = item.safeParse(value);
      if (!success) {
        for (const { path, ...issue } of error.issues) {
          context.issues.push({ ...issue, input: value, path: [i, ...path] } as RawIssue);
        }
        return z.NEVER;
      }
      read.push(data);
    }
    return read;
  });
}
