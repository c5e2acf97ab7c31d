/** The feature `subscriptions`. */
import { defineFeature } from '../../core/feature.ts';

export const subscriptions = defineFeature({
  name: 'subscriptions',
  needs: ['coverage', 'products'],
  offers: ['filter-command.ts', 'register-command.ts', 'register-filter.ts', 'state.ts'],
  status: () => import('./status.ts'),
  commands: [
    {
      name: 'register',
      under: 'subscribe',
      load: async () => (await import('./register-command.ts')).registerCommand,
    },
    {
      name: 'subscriptions',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).subscriptionsCommand,
    },
    {
      name: 'maintain',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).maintainCommand,
    },
    {
      name: 'filter',
      under: 'subscribe',
      load: async () => (await import('./filter-command.ts')).filterCommand,
    },
  ],
  listener: () => import('./listener.ts'),
  jobs: [
    {
      name: 'maintenance',
      runsOn: 'leader',
      start: async ({ receiver: { store }, settings, log, io }) => {
        const { maintainedAccount, maintenanceRound, startMaintenance } = await import('./job.ts');
        const account = maintainedAccount(settings, log);
        if (account === null) return null;
        const round = () => maintenanceRound(account, store, io);
        return startMaintenance({ round, log, random: io.random });
      },
    },
  ],
});
