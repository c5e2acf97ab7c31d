/** The feature `timeliness`. */
import { defineFeature } from '../../core/feature.ts';

export const timeliness = defineFeature({
  name: 'timeliness',
  listener: () => import('./listener.ts'),
});
