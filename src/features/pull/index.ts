/** The feature `pull`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/module-file.ts';
import { defineTables } from '../../store/tables.ts';

export const pull = defineFeature({
  name: 'pull',
  tables: [
    defineTables({
      group: 'queues',
      operations: moduleFile('./operations', import.meta.url),
      reader: () => ({}),
      store: () => ({}),
    }),
  ],
});
