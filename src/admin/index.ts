/** The catalogue account: registered subscriptions and the history of their changes. */
import { defineFeature } from '../core/feature.ts';
import { moduleFile } from '../core/host/module-file.ts';
import { pick } from '../core/host/rpc.ts';
import { defineTables } from '../store/tables.ts';
import type { Administration, AdministrationReader } from './account.ts';

declare module '../store/tables.ts' {
  interface ReaderPorts {
    administration: AdministrationReader;
  }
  interface StorePorts {
    administration: Administration;
  }
}

export const admin = defineFeature({
  name: 'admin',
  tables: [
    defineTables<typeof import('./operations.ts'), AdministrationReader, Administration>({
      group: 'administration',
      operations: moduleFile('./operations', import.meta.url),
      reader: (reads) =>
        pick(reads, ['registrations', 'history', 'gaps', 'deliveryMarks', 'queues']),
      store: (reader, writes) => ({
        ...reader,
        ...pick(writes, ['commit', 'markDeliveries', 'saveQueues']),
      }),
      lease: 'subscriptions',
      withoutLease: ['markDeliveries', 'saveQueues'],
    }),
  ],
  settings: () => import('./settings.ts'),
});
