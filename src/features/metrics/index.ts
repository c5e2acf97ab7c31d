/** The feature `metrics`. */
import { defineFeature } from '../../core/feature.ts';
import type { Metrics } from './metrics.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    metrics: Pick<Metrics, 'scrape'>;
  }
}

export const metrics = defineFeature({
  name: 'metrics',
  service: async ({ statusParts, log }) => {
    const { createMetrics } = await import('./metrics.ts');
    const metrics = createMetrics(statusParts, log);
    return { ...metrics, parts: { metrics } };
  },
  listener: () => import('./metrics.ts'),
});
