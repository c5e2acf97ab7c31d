/** The row of the table that says how long notifications are kept. */
import { kept } from './keep-schema.ts';
import { variable } from './variable.ts';

export const keepVariables = {
  keep: variable({
    name: 'EARSHOT_KEEP',
    schema: kept,
    description:
      'What of the log the receiver keeps: notifications up to an age (`365d`), as many of the newest as fit a size (`50GB`), or both with a comma. Once a day it removes the others for good. Everything is kept unless told.',
    example: '365d,50GB',
  }),
} as const;
