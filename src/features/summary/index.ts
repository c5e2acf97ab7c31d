/** The feature `summary`. */
import { defineFeature } from '../../core/feature.ts';

export const summary = defineFeature({
  name: 'summary',
  commands: [
    {
      name: 'summarize',
      under: 'look',
      load: async () => (await import('./command.ts')).summarizeCommand,
    },
    {
      name: 'summaries',
      under: { command: 'query' },
      load: async () => (await import('./query-command.ts')).querySummariesCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
