/** The row of the table that says whether the log is compacted by itself. */
import { z } from 'zod';
import { variable } from './variable.ts';

export const compactVariables = {
  compact: variable({
    name: 'EARSHOT_COMPACT',
    schema: z.enum(['on', 'off']),
    default: 'on',
    description:
      'Whether the receiver compacts the log by itself, every hour, while nothing waits to be stored. `earshot compact` works either way.',
    example: 'on',
  }),
} as const;
