/** The feature `live`. */
import { defineFeature } from '../../core/feature.ts';

export const live = defineFeature({
  name: 'live',
  needs: ['products', 'messages'],
  listener: () => import('./listener.ts'),
});
