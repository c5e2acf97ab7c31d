/** The feature `metrics`. */
import { defineFeature } from '../../core/feature.ts';

export const metrics = defineFeature({
  name: 'metrics',
});
