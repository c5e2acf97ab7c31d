/** The feature `alerts`. */
import { defineFeature } from '../../core/feature.ts';
import { moduleFile, pick } from '../../core/host/rpc.ts';
import { defineTables } from '../../store/tables.ts';
import { type AlertReader, type Alerts, activeMax } from './terms.ts';

declare module '../../store/tables.ts' {
  interface ReaderPorts {
    alerts: AlertReader;
  }
  interface StorePorts {
    alerts: Alerts;
  }
}

export const alerts = defineFeature({
  name: 'alerts',
  needs: ['coverage'],
  status: () => import('./status.ts'),
  activeAlerts: ({ alerts: port }) => port.alerts({ all: false, limit: activeMax }),
  doctor: () => import('./doctor.ts'),
  commands: [
    {
      name: 'alerts',
      under: 'look',
      load: async () => (await import('./command.ts')).alertsCommand,
    },
  ],
  listener: () => import('./listener.ts'),
  tables: [
    defineTables<typeof import('./sql.ts'), AlertReader, Alerts>({
      group: 'alerts',
      sharesCommits: true,
      operations: moduleFile('./sql', import.meta.url),
      reader: (reads) => pick(reads, ['alerts', 'unsent']),
      store: (reader, writes) => ({
        ...reader,
        ...pick(writes, ['settleFindings', 'recordAttempt']),
      }),
      repeated: ['unsent'],
      lease: 'leader',
    }),
  ],
  settings: () => import('./settings.ts'),
  jobs: [
    {
      name: 'watchdog',
      runsOn: 'leader',
      start: async (context) => (await import('./job.ts')).serveWatchdog(context),
    },
  ],
});
