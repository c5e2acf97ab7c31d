/** The catalogue account: registered subscriptions and the history of their changes. */

import { defineFeature } from '../core/feature.ts';
import { moduleFile, pick } from '../core/host/rpc.ts';
import { defineTables } from '../store/tables.ts';
import type { Administration, AdministrationReader } from './account.ts';
import type { AccountUse, OpenedAccount } from './open-account.ts';

declare module '../core/cli/command.ts' {
  interface PartUses {
    account?: AccountUse;
  }
  interface Parts {
    /** The catalogue account; locked unless the command only reads. */
    account: OpenedAccount;
  }
}

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
    defineTables<typeof import('./sql.ts'), AdministrationReader, Administration>({
      group: 'administration',
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) =>
        pick(reads, ['registrations', 'history', 'gaps', 'deliveryMarks', 'queues']),
      store: (reader, writes) => ({
        ...reader,
        ...pick(writes, ['commit', 'markDeliveries', 'saveQueues']),
      }),
      repeated: ['registrations'],
      quiet: ['markDeliveries', 'saveQueues'],
      lease: 'subscriptions',
      withoutLease: ['markDeliveries', 'saveQueues'],
    }),
  ],
  settings: () => import('./settings.ts'),
  parts: {
    account: async (io, { account: use = {} }) => {
      const { loadAccountConfig, needsEndpoint } = await import('./settings.ts');
      const config = loadAccountConfig(io, { publicUrl: use.publicUrl ?? needsEndpoint(io) });
      return (await import('./open-account.ts')).openAccount(config, io, use);
    },
  },
});
