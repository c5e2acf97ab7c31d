/** The feature `pull`. */
import { defineFeature } from '../../core/feature.ts';

export const pull = defineFeature({
  name: 'pull',
});
