/** The feature `coverage`. */
import { defineFeature } from '../../core/feature.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    /** Returns why hours are not compared automatically; null when they are. */
    comparisonOff: () => string | null;
  }
}

export const coverage = defineFeature({
  name: 'coverage',
  commands: [
    {
      name: 'coverage',
      under: 'look',
      load: async () => (await import('./command.ts')).coverageCommand,
    },
    {
      name: 'reconcile',
      under: 'repair',
      load: async () => (await import('./reconcile-command.ts')).reconcileCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
