/** The store: notification log, quarantine, and the tables of features. */
import { defineFeature } from '../core/feature.ts';
import type { NotificationLog, Quarantine } from '../core/terms/ports.ts';
import type { Store, StoreReader } from './store.ts';
import { type ReaderPorts, tablesOf } from './tables.ts';

declare module '../core/cli/command.ts' {
  interface Parts {
    /** The store, read-only. */
    reader: StoreReader;
    /** The store, read-write. The data directory must exist. */
    store: Store;
  }
}

declare module '../core/api/listener-slot.ts' {
  interface ConsoleParts extends ReaderPorts {
    notifications: NotificationLog;
    quarantine: Pick<Quarantine, 'quarantined' | 'quarantinedCount' | 'quarantineEntry'>;
  }
}

export const store = defineFeature({
  name: 'store',
  status: () => import('./status.ts'),
  parts: {
    reader: async (io) => {
      const { dataDir } = (await import('../core/config/config.ts')).loadConfig(io, ['data']);
      return (await import('./store.ts')).openStoreReader(dataDir, tablesOf(io.features));
    },
    store: async (io) => {
      const place = (await import('../core/config/config.ts')).loadConfig(io, ['data']);
      const { openConfiguredStore } = await import('./store.ts');
      return openConfiguredStore(place, io, { mustExist: true });
    },
  },
});
