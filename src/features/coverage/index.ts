/** The feature `coverage`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile } from '../../core/host/module-file.ts';
import { pick } from '../../core/host/rpc.ts';
import { defineTables } from '../../store/tables.ts';
import type { Completeness, CompletenessReader } from './completeness.ts';

declare module '../../store/tables.ts' {
  interface ReaderPorts {
    completeness: CompletenessReader;
  }
  interface StorePorts {
    completeness: Completeness;
  }
}

declare module '../../core/api/listener-slot.ts' {
  interface ConsoleParts {
    /** Returns why hours are not compared automatically; null when they are. */
    comparisonOff: () => string | null;
  }
}

export const coverage = defineFeature({
  name: 'coverage',
  commands: [
    {
      name: 'coverage',
      under: 'look',
      load: async () => (await import('./command.ts')).coverageCommand,
    },
    {
      name: 'reconcile',
      under: 'repair',
      load: async () => (await import('./reconcile-command.ts')).reconcileCommand,
    },
  ],
  listener: () => import('./listener.ts'),
  tables: [
    defineTables<typeof import('./operations.ts'), CompletenessReader, Completeness>({
      group: 'completeness',
      operations: moduleFile('./operations', import.meta.url),
      reader: (reads) =>
        pick(reads, [
          'recoveredEvents',
          'definitions',
          'uptimes',
          'coverage',
          'arrivals',
          'stored',
          'unprunedSinceUs',
        ]),
      store: (reader, writes, { recover }) => ({
        ...reader,
        ...pick(writes, ['saveCoverage', 'recordUptime', 'beginRun', 'endRun']),
        recover,
      }),
      lease: 'reconcile',
      withoutLease: ['recordUptime'],
    }),
  ],
  settings: () => import('./settings.ts'),
});
