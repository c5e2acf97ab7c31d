/** The feature `odata`. */
import { defineFeature } from '../../core/feature.ts';

export const odata = defineFeature({
  name: 'odata',
  listener: () => import('./listener.ts'),
});
