/** The feature `timeliness`. */
import { defineFeature } from '../../core/feature.ts';

export const timeliness = defineFeature({
  name: 'timeliness',
  needs: ['products', 'coverage'],
  listener: () => import('./listener.ts'),
});
