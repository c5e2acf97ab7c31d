/** The feature `live`. */
import { defineFeature } from '../../core/feature.ts';
import type { Logger } from '../../core/terms/ports.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    log: Logger;
  }
}

export const live = defineFeature({
  name: 'live',
  needs: ['products'],
  listener: () => import('./listener.ts'),
});
