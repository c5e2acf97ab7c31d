/** Settings of pruning. */
import { defineSections, defineVariables, type Loaded } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'keep'> {}
}

export const variables = defineVariables({
  EARSHOT_KEEP: {
    schema: values.kept,
    description:
      'Limits of the notification log: a maximum age (`365d`), a maximum size (`50GB`), or both, separated by a comma. Once a day, the receiver permanently deletes the oldest notifications that exceed a limit. By default, all notifications are kept.',
    example: '365d,50GB',
  },
});

export const sections = defineSections(variables, {
  /** Null when everything is kept. */
  keep: ({ value }) => value('EARSHOT_KEEP') ?? null,
});

export const groups = { start: ['keep'] };
