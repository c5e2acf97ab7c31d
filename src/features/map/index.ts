/** The feature `map`. */
import { defineFeature } from '../../core/feature.ts';

export const map = defineFeature({
  name: 'map',
  needs: ['products'],
  listener: () => import('./listener.ts'),
});
