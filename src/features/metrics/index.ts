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
  needs: ['status', 'subscriptions'],
  listener: () => import('./listener.ts'),
});
