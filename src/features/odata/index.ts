/** The feature `odata`. */
import { defineFeature } from '../../core/feature.ts';

export const odata = defineFeature({
  name: 'odata',
  needs: ['products'],
  listener: () => import('./listener.ts'),
});
