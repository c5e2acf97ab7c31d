/** Maintenance of the subscriptions as a background job of the receiver. */

import type { ProbeEndpoint } from '../../admin/endpoint-probe.ts';
import { type MaintenanceResult, noteText } from '../../admin/maintain.ts';
import type { AccountIo } from '../../admin/open-account.ts';
import {
  type AccountConfig,
  type CompleteAccountConfig,
  completeAccountConfig,
} from '../../admin/settings.ts';
import { pause } from '../../core/cli/io.ts';
import type { StartConfig } from '../../core/config/config.ts';
import { type ConfigPlace, loadSubscriptionsFile } from '../../core/config/subscriptions-file.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { hourMs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { Store } from '../../store/store.ts';

/** The first round waits until the endpoint is likely to answer. */
const usual: RoundTimes = { firstMs: 60_000, intervalMs: 6 * hourMs, retryMs: 300_000 };

/** Short, as a round can be interrupted at any point. */
const stopGraceMs = 3_000;

/** Starts the job. A round fails if maintenance of one subscription fails. */
export function startMaintenance(options: {
  round: () => Promise<MaintenanceResult[]>;
  log: Logger;
  random: () => number;
  timing?: Partial<RoundTimes>;
}): Job {
  const { round, log, random, timing } = options;
  const run = async () => {
    const results = await round();
    for (const result of results) logResult(result, log);
    return results.every(({ failure }) => failure === null);
  };
  return startJob(
    {
      every: { ...usual, ...timing },
      run,
      failed: 'maintenance failed; retrying later',
      // A rotation may hold the lock for minutes.
      busy: 'maintenance postponed: another command is changing the account',
      stopGraceMs,
    },
    { pause, random, log },
  );
}

/** Runs one round on an open store, with the current configuration, files and credentials. */
export async function maintenanceRound(
  config: CompleteAccountConfig,
  store: Pick<Store, 'accept' | 'administration' | 'acquireLock'>,
  io: AccountIo & ConfigPlace,
): Promise<MaintenanceResult[]> {
  const [{ createAccountContext }, { maintain }] = await Promise.all([
    import('../../admin/open-account.ts'),
    import('../../admin/maintain.ts'),
  ]);
  const inFile = await loadSubscriptionsFile(io);
  const release = await store.acquireLock('subscriptions', { waitMs: 0 });
  try {
    const context = createAccountContext(config, store, io);
    const probe = toleratingConnectionFault(context.probe);
    return await maintain(inFile, { ...context, probe });
  } finally {
    release();
  }
}

const connectionFaults = ['connection-refused', 'no-route', 'no-answer'];

/**
 * Ignores failed connections: many routers do not let a host reach its own public address. Wrong
 * answers and certificates are still reported.
 */
function toleratingConnectionFault(probe: ProbeEndpoint): ProbeEndpoint {
  return async (endpoint, credentials) => {
    const report = await probe(endpoint, credentials);
    const isUnconnected =
      report.tls === null && connectionFaults.includes(report.fault?.code ?? '');
    return isUnconnected ? { ...report, fault: null } : report;
  };
}

function logResult(result: MaintenanceResult, log: Logger): void {
  const { name, status, did, notes, failure } = result;
  const fields = { subscription: name, status };
  if (did !== null) log.info({ ...fields, did }, 'maintenance made a change');
  if (failure !== null) log.error({ ...fields, reason: failure }, 'maintenance failed');
  for (const note of notes)
    log.warn({ ...fields, note: noteText(note) }, 'maintenance found a problem');
}

/** Returns the account for maintenance; logs the reason and returns null without lasting credentials. */
export function maintainedAccount(
  config: AccountConfig & Pick<StartConfig, 'listen'>,
  log: Logger,
): CompleteAccountConfig | null {
  // Only push subscriptions need a URL.
  const complete = completeAccountConfig(config, { publicUrl: config.listen !== null });
  const reason = 'missing' in complete ? complete.missing.join(' ') : shortLivedReason(complete);
  if (!('missing' in complete) && reason === null) return complete;
  log.info({ reason }, 'subscription maintenance disabled');
  return null;
}

/** Returns why the configured credentials expire too soon for maintenance; null if they do not. */
function shortLivedReason({ account }: CompleteAccountConfig): string | null {
  if (account.kind === 'token') {
    return 'EARSHOT_ACCESS_TOKEN expires within minutes. Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
  }
  if (account.totp !== undefined && /^\d{6}$/.test(account.totp)) {
    return 'EARSHOT_ACCOUNT_TOTP is a one-time code. Set EARSHOT_ACCOUNT_TOTP to the shared secret.';
  }
  return null;
}
