/** The feature `stac`. */
import { defineFeature } from '../../core/feature.ts';

export const stac = defineFeature({
  name: 'stac',
  listener: () => import('./listener.ts'),
});
