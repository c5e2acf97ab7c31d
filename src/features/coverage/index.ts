/** The feature `coverage`. */

import { defineFeature } from '../../core/feature.ts';
import { moduleFile, pick } from '../../core/host/rpc.ts';
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

export const coverage = defineFeature({
  name: 'coverage',
  needs: ['products'],
  offers: [
    'compare-page.ts',
    'completeness.ts',
    'coverage.ts',
    'draw-hours.ts',
    'job.ts',
    'reconcile-command.ts',
    'reconcile.ts',
    'settings.ts',
    'tasks.ts',
  ],
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
    defineTables<typeof import('./sql.ts'), CompletenessReader, Completeness>({
      group: 'completeness',
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) =>
        pick(reads, [
          'recoveredEvents',
          'definitions',
          'uptimes',
          'coverage',
          'stored',
          'withoutRecord',
          'unprunedSinceUs',
        ]),
      store: (reader, writes, { recover }) => ({
        ...reader,
        ...pick(writes, ['saveCoverage', 'recordUptime']),
        recover,
      }),
      lease: 'reconcile',
      withoutLease: ['recordUptime'],
      quiet: ['recordUptime'],
    }),
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'uptime marks',
      runsOn: 'each',
      start: async ({ receiver: { store }, log, io: { nowUs } }) => {
        const { startUptimeMarks } = await import('./job.ts');
        return startUptimeMarks({ completeness: store.completeness, nowUs, log });
      },
    },
    {
      name: 'reconcile',
      runsOn: 'leader',
      start: async ({ receiver: { store, products }, settings, log, io }) => {
        const { comparisonOff } = await import('./settings.ts');
        const reason = comparisonOff(settings);
        if (reason === null) {
          const { startReconcile } = await import('./job.ts');
          return startReconcile({ store, products, log }, settings, io);
        }
        log.info({ reason }, 'automatic comparison with the catalogue disabled');
        return null;
      },
    },
  ],
});
