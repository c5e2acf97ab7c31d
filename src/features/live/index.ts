/** The feature `live`. */
import { defineFeature } from '../../core/feature.ts';

export const live = defineFeature({
  name: 'live',
});
