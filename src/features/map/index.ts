/** The feature `map`. */
import { defineFeature } from '../../core/feature.ts';

export const map = defineFeature({
  name: 'map',
  listener: () => import('./listener.ts'),
});
