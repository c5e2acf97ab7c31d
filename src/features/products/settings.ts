/** Settings of the product index. */
import { defineSections, defineVariables, type Loaded } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'index'> {}
}

export const variables = defineVariables({
  EARSHOT_INDEX: {
    schema: values.onOrOff,
    default: 'on',
    description:
      '`on`: the receiver maintains the product index. Queries by filter need the index. `off`: only `earshot query products` updates the index.',
    example: 'on',
  },
});

export const sections = defineSections(variables, {
  /** True if the product index is maintained. */
  index: ({ value }) => value('EARSHOT_INDEX'),
});

export const groups = { start: ['index'] };
