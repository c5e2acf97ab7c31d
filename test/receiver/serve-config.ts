/** The configuration of a receiver in tests: loopback, plain HTTP, no private listener, no index. */

import { app } from '../../src/app.ts';
import { loadServed, type StartConfig } from '../../src/core/config/config.ts';
import type { Feature } from '../../src/core/feature.ts';
import type { StatusSources } from '../../src/core/status/status.ts';
import { serveCertificate } from '../../src/features/certificate/job.ts';
import { settings } from '../helpers/settings.ts';

export const loopback = { host: '127.0.0.1', port: 0 };

const env = {
  EARSHOT_ENDPOINT_USERNAME: 'u',
  EARSHOT_ENDPOINT_PASSWORD: 'a long password',
  EARSHOT_TLS: 'off',
};

export function serveConfig(
  changes: Pick<StartConfig, 'dataDir'> & Partial<StartConfig>,
): StartConfig {
  return {
    ...loadServed({ env, settings, readFile: () => '' }, true),
    ...{ listen: loopback, console: null, index: false },
    ...{ credentials: { source: 'variables', pairs: [] } },
    ...changes,
  };
}

/** Returns the settings of a receiver with its index, as the status and the pages read them. */
export function settingWith(changes: Partial<StartConfig> = {}): StatusSources['setting'] {
  const config = serveConfig({ dataDir: '/data', index: true, ...changes });
  return (name) => config[name];
}

/** Returns the features of the program; the files of the certificate are read at this interval. */
export const withCertificateWatch = (intervalMs: number): Feature[] =>
  app.map((one) => {
    if (one.name !== 'certificate') return one;
    return { ...one, service: (context) => serveCertificate(context, intervalMs) };
  });
