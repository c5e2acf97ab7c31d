/** The feature `shared-log`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/module-file.ts';
import { defineTables } from '../../store/tables.ts';

export const sharedLog = defineFeature({
  name: 'shared-log',
  commands: [
    {
      name: 'log',
      under: { command: 'admin' },
      load: async () => (await import('./command.ts')).logCommand,
    },
  ],
  tables: [
    defineTables({
      group: 'sharedLog',
      operations: moduleFile('./operations', import.meta.url),
      reader: () => ({}),
      store: () => ({}),
    }),
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'reports to other receivers',
      runsOn: 'each',
      start: async ({ receiver, settings, version, log, io }) => {
        if (receiver.store.node === null) return null;
        const { startNodeReports } = await import('./job.ts');
        return startNodeReports(receiver, log, { ...settings, version }, io);
      },
    },
    {
      name: 'shared files',
      runsOn: 'each',
      start: async ({ receiver: { syncFiles }, log, io }) => {
        if (syncFiles === null) return null;
        const { startFileSync } = await import('./shared-files.ts');
        return startFileSync(syncFiles, { ...io, log });
      },
    },
    {
      name: 'upkeep of the shared log',
      runsOn: 'leader',
      start: async ({ receiver: { store }, log, io }) => {
        if (store.node === null) return null;
        const { startLogUpkeep } = await import('./job.ts');
        return startLogUpkeep({ store, node: store.node, log }, io);
      },
    },
  ],
});
