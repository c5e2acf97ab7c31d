/** The feature `sinks`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile, pick } from '../../core/host/rpc.ts';
import { changeAll, defineTables, pages } from '../../store/tables.ts';
import type { SinkReader, Sinks } from './terms.ts';

declare module '../../store/tables.ts' {
  interface ReaderPorts {
    sinks: SinkReader;
  }
  interface StorePorts {
    sinks: Sinks;
  }
}

export const sinks = defineFeature({
  name: 'sinks',
  needs: ['coverage', 'messages', 'stac'],
  status: () => import('./status.ts'),
  doctor: () => import('./doctor.ts'),
  commands: [
    {
      name: 'sinks',
      under: 'repair',
      load: async () => (await import('./command.ts')).sinksCommand,
    },
  ],
  listener: () => import('./listener.ts'),
  tables: [
    defineTables<typeof import('./sql.ts'), SinkReader, Sinks>({
      group: 'sinks',
      sharesCommits: true,
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) => ({
        ...pick(reads, ['nextDueAtUs', 'counts', 'replay']),
        due: async (query) =>
          (await reads.nextDueAtUs(query.sink)) === null ? [] : reads.due(query),
        items: ({ limit, ...query }) =>
          pages(limit, (rowsMax, last) =>
            reads.itemsPage({ ...query, beforeId: last?.id ?? Number.MAX_SAFE_INTEGER, rowsMax }),
          ),
      }),
      store: (reader, writes) => ({
        ...reader,
        ...pick(writes, ['enqueue', 'settle', 'addReplay']),
        retry: (options) => changeAll(() => writes.retrySome(options)),
        drop: (options) => changeAll(() => writes.dropSome(options)),
      }),
      repeated: ['counts', 'nextDueAtUs', 'replay'],
      lease: 'sinks',
      withoutLease: ['retrySome', 'dropSome', 'addReplay'],
    }),
  ],
  jobs: [
    {
      name: 'sinks',
      runsOn: 'each',
      start: async ({ receiver: { store }, settings, log, io }) => {
        const { serveSinks } = await import('./job.ts');
        const { messageUrls } = await import('../messages/formats.ts');
        return serveSinks({ store, urls: messageUrls(settings) }, log, io);
      },
    },
  ],
  settings: () => import('./settings.ts'),
});
