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
});
