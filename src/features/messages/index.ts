/** The feature `messages`: notifications as messages for other programs, and the feed of them. */
import { defineFeature } from '../../core/feature.ts';
import type { Logger } from '../../core/terms/ports.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    log: Logger;
  }
}

export const messages = defineFeature({
  name: 'messages',
  needs: ['stac'],
  offers: ['document.ts', 'event-stream.ts', 'formats.ts', 'message-reader.ts'],
  listener: () => import('./listener.ts'),
});
