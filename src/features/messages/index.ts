/** The feature `messages`: notifications as messages for other programs, and the feed of them. */
import { defineFeature } from '../../core/feature.ts';

export const messages = defineFeature({
  name: 'messages',
  needs: ['stac'],
  offers: ['document.ts', 'formats.ts'],
});
