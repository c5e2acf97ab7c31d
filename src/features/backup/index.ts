/** The feature `backup`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile, pick } from '../../core/host/rpc.ts';
import type { BackupReader, Backups } from '../../core/terms/ports.ts';
import { defineTables, tablesOf } from '../../store/tables.ts';

declare module '../../store/tables.ts' {
  interface ReaderPorts {
    backups: BackupReader;
  }
  interface StorePorts {
    backups: Backups;
  }
}

export const backup = defineFeature({
  name: 'backup',
  status: () => import('./status.ts'),
  commands: [
    {
      name: 'backup',
      under: 'data',
      load: async () => (await import('./command.ts')).backupCommand,
    },
    {
      name: 'restore',
      under: 'data',
      load: async () => (await import('./restore-command.ts')).restoreCommand,
    },
  ],
  tables: [
    defineTables<typeof import('./sql.ts'), BackupReader, Backups>({
      group: 'backups',
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) => pick(reads, ['lastBackups']),
      store: (reader, writes) => ({ ...reader, ...pick(writes, ['recordBackup']) }),
      isLocal: true,
    }),
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'backups',
      runsOn: 'each',
      start: async ({ receiver: { store }, settings, version, log, io }) => {
        const { folder } = settings.backup;
        if (folder === null) return null;
        const { startBackups } = await import('./job.ts');
        const tables = tablesOf(io.features);
        return startBackups(
          { store, log },
          { ...settings, ...settings.backup, folder, version, tables },
          io,
        );
      },
    },
  ],
});
