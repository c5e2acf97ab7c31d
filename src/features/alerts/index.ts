/** The feature `alerts`. */
import { defineFeature } from '../../core/feature.ts';

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    /** Returns true if alerts are sent to a URL or a command. */
    hasAlertChannel: () => boolean;
  }
}

export const alerts = defineFeature({
  name: 'alerts',
  commands: [
    {
      name: 'alerts',
      under: 'look',
      load: async () => (await import('./command.ts')).alertsCommand,
    },
  ],
  listener: () => import('./listener.ts'),
});
