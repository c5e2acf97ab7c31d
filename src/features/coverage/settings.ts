/** Settings of the comparison with the catalogue. */

import type { Config, loadConfig } from '../../core/config/config.ts';
import { defineSections, defineVariables, type Loaded } from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';
import type { StatusSources } from '../../core/status/status.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'reconcile' | 'requestsPerMinute'> {}
}

export const variables = defineVariables({
  EARSHOT_RECONCILE: {
    schema: values.onOrOff,
    default: 'on',
    description:
      '`on`: the receiver compares the log with the catalogue automatically and fetches missing notifications. `off`: only `earshot reconcile` compares.',
    example: 'on',
  },
  EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: {
    schema: values.count,
    default: '60',
    description:
      'Maximum number of product queries per minute that earshot sends to the catalogue. Each query returns up to 400 products (`earshot reconcile`: 1,000).',
    example: '60',
  },
});

export const sections = defineSections(variables, {
  /** True if the receiver compares the log with the catalogue. */
  reconcile: ({ value }) => value('EARSHOT_RECONCILE'),
  requestsPerMinute: ({ value }) => value('EARSHOT_RECONCILE_REQUESTS_PER_MINUTE'),
});

export const groups = { start: ['reconcile', 'requestsPerMinute'] };

/** Sections for a comparison with the catalogue. */
export const reconcileSections = ['data', 'catalogueUrl', 'requestsPerMinute'] as const;
export type ReconcileConfig = ReturnType<typeof loadConfig<(typeof reconcileSections)[number]>>;

/** Returns why the receiver does not compare automatically with its settings; null when it does. */
export const comparisonOffBy = ({ setting }: Pick<StatusSources, 'setting'>): string | null =>
  comparisonOff({ reconcile: setting('reconcile'), index: setting('index') });

/** The same for loaded settings. */
export function comparisonOff({
  reconcile,
  index,
}: Pick<Config, 'reconcile' | 'index'>): string | null {
  if (!reconcile) return 'EARSHOT_RECONCILE is off.';
  return index ? null : 'EARSHOT_INDEX is off, but a comparison needs the product index.';
}
