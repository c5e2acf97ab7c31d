/** The store: notification log, quarantine, and the tables of features. */
import { defineFeature } from '../core/feature.ts';
import type { NotificationLog, Quarantine } from '../core/terms/ports.ts';
import type { StoreReader } from './store.ts';

declare module '../core/api/listener-slot.ts' {
  interface ConsoleParts
    extends Pick<
      StoreReader,
      'administration' | 'alerts' | 'completeness' | 'sinks' | 'summaries'
    > {
    notifications: NotificationLog;
    quarantine: Pick<Quarantine, 'quarantined' | 'quarantinedCount' | 'quarantineEntry'>;
  }
}

export const store = defineFeature({ name: 'store' });
