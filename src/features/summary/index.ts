/** The feature `summary`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile, pick } from '../../core/host/rpc.ts';
import { defineTables, pages } from '../../store/tables.ts';
import type { Summaries, SummaryReader } from './terms.ts';

declare module '../../store/tables.ts' {
  interface ReaderPorts {
    summaries: SummaryReader;
  }
  interface StorePorts {
    summaries: Summaries;
  }
}

export const summary = defineFeature({
  name: 'summary',
  needs: ['products'],
  status: () => import('./status.ts'),
  doctor: () => import('./doctor.ts'),
  commands: [
    {
      name: 'summarize',
      under: 'look',
      load: async () => (await import('./command.ts')).summarizeCommand,
    },
    {
      name: 'summaries',
      under: { command: 'query' },
      load: async () => (await import('./query-command.ts')).querySummariesCommand,
    },
  ],
  listener: () => import('./listener.ts'),
  productTexts: async () => (await import('./facts.ts')).productTexts,
  tables: [
    defineTables<typeof import('./sql.ts'), SummaryReader, Summaries>({
      group: 'summaries',
      sharesCommits: true,
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) => ({
        ...pick(reads, ['textsOf', 'waiting', 'spending', 'refusedAnswer']),
        due: async (query) => ((await reads.waiting()).waiting === 0 ? [] : reads.due(query)),
        find: (query) =>
          pages(query.limit, (rowsMax, last) =>
            reads.page({ ...query, beforeId: last?.id ?? query.beforeId }, rowsMax),
          ),
      }),
      store: (reader, writes) => ({
        ...reader,
        ...pick(writes, ['enqueue', 'beginRequest', 'settle']),
      }),
      repeated: ['waiting'],
      lease: 'summaries',
    }),
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'summaries',
      runsOn: 'leader',
      start: async (context) => (await import('./job.ts')).serveSummaries(context),
    },
  ],
});
