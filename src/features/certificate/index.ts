/** The feature `certificate`. */
import { defineFeature } from '../../core/feature.ts';

export const certificate = defineFeature({
  name: 'certificate',
  status: () => import('./status.ts'),
  listener: () => import('./status.ts'),
  doctor: () => import('./status.ts'),
  commands: [
    {
      name: 'certificate',
      under: 'subscribe',
      load: async () => (await import('./command.ts')).certificateCommand,
    },
  ],
  sharedFiles: [
    { name: 'acme/state.json', keeps: true },
    { name: 'acme/certificate.json', keeps: true },
    { name: 'acme/challenge.json', keeps: false },
  ],
  service: async (context) => (await import('./job.ts')).serveCertificate(context),
  settings: () => import('./settings.ts'),
});
