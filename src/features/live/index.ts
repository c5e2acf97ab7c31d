/** The feature `live`. */
import { defineFeature } from '../../core/feature.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { LiveLimits } from './feed.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    log: Logger;
    liveLimits?: Partial<LiveLimits> | undefined;
  }
}

export const live = defineFeature({
  name: 'live',
  needs: ['products'],
  listener: () => import('./listener.ts'),
});
