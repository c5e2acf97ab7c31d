/** Background jobs of a receiver: maintenance, summaries, comparison, watchdog, sinks, backups, pruning. */

import { recordReader } from '../admin/pull-queue.ts';
import {
  type AccountConfig,
  type CompleteAccountConfig,
  completeAccountConfig,
} from '../admin/settings.ts';
import { type Io, pause } from '../core/cli/io.ts';
import type { StartConfig } from '../core/config/config.ts';
import { type Closers, createClosers } from '../core/host/closers.ts';
import type { Job } from '../core/host/job.ts';
import type { Logger } from '../core/terms/ports.ts';
import { comparisonOff } from '../features/coverage/settings.ts';
import type { LeaderJobs } from '../features/shared-log/leadership.ts';
import type { DeliveryState } from '../features/sinks/terms.ts';
import type { Store } from '../store/store.ts';
import { tablesOf } from '../store/tables.ts';
import type { ConfigWatch } from './reload-config.ts';
import type { RunningReceiver } from './serve.ts';

export interface BackgroundConfig extends StartConfig {
  /** Version of earshot. */
  version: string;
}

/** Dependencies of the background jobs; each job is added to the closers as soon as it runs. */
interface Deps {
  log: Logger;
  io: Io;
  closers: Closers;
}

/** Starts every background job that is configured. None of them delays intake. */
export async function startBackgroundJobs(
  receiver: RunningReceiver,
  settings: BackgroundConfig,
  { log, io, closers }: Deps,
): Promise<void> {
  const loaded = await loadJobs();
  const { version, backup, summary } = settings;
  const { store, products } = receiver;
  const { completeness } = store;
  const parts = { store, products, log };
  const { nowUs } = io;
  const started = <Part extends Job>(name: string, part: Part): Part => {
    closers.add(() => part.stop(), name);
    return part;
  };
  const config = await loaded.watchConfig(io.workingDir, log);
  started('uptime marks', loaded.startUptimeMarks({ completeness, nowUs, log }));
  const reports = loaded.startNodeReports(receiver, log, settings, io);
  if (reports !== null) started('reports to other receivers', reports);
  if (receiver.syncFiles !== null) {
    const { startFileSync } = await import('../features/shared-log/shared-files.ts');
    started('shared files', startFileSync(receiver.syncFiles, { ...io, log }));
  }
  startStorageJobs(loaded, started, { parts, settings, io });
  const urls = { catalogue: settings.catalogueUrl, receiver: settings.publicUrl };
  const sinks = started('sinks', await loaded.serveSinks({ store, urls }, log, io));
  const deliveryState = () => ({ ...sinks.deliveryState(), rejected: config.rejected() });
  const leader = started(
    'leader jobs',
    await loaded.startLeaderJobs({
      ...{ store, pause, log },
      start: () => startSingleJobs(loaded, receiver, settings, { log, io, config, deliveryState }),
    }),
  );
  const mode = createMode(() => loaded.summaryModeOf(summary, io.workingDir));
  receiver.setBackgroundJobs({
    version,
    deliveryState,
    summaryMode: mode.current,
    backupEveryHours: backup.folder === null ? null : backup.everyHours,
    comparisonOff: comparisonOff(settings),
    hasAlertChannel: settings.alertUrl !== null || settings.alertCommand !== null,
  });
  config.start(async (file) => {
    await sinks.change(file);
    await leader.reload();
    mode.reload();
  });
  started('configuration file', config);
}

/** Starts the jobs that only one receiver runs: maintenance, comparison, summaries, watchdog. */
async function startSingleJobs(
  loaded: Awaited<ReturnType<typeof loadJobs>>,
  receiver: RunningReceiver,
  settings: BackgroundConfig,
  { log, io, config, deliveryState }: Omit<Deps, 'closers'> & SingleJobsState,
): Promise<LeaderJobs> {
  const { store, products } = receiver;
  const closers = createClosers();
  const started = (name: string, part: Job) => closers.add(() => part.stop(), name);
  try {
    const account = maintainedAccount(settings, log);
    if (settings.account !== null) {
      const { startPullIntake } = await import('../features/pull/job.ts');
      const pulled = { ...settings, account: settings.account };
      started('pull intake', startPullIntake({ ...receiver, log }, pulled, io));
    } else await warnOfUnreadQueues(store, log);
    if (account !== null) {
      const { maintenanceRound, startMaintenance } = await import(
        '../features/subscriptions/job.ts'
      );
      const round = () => maintenanceRound(account, store, io);
      started('maintenance', startMaintenance({ round, log, random: io.random }));
    }
    const comparisonOffReason = comparisonOff(settings);
    if (comparisonOffReason === null) {
      const { startReconcile } = await import('../features/coverage/job.ts');
      started('reconcile', startReconcile({ store, products, log }, settings, io));
    } else {
      // Nothing fetches records, so its cursor must not prevent pruning.
      await store.pruning.removeReader(recordReader);
      log.info({ reason: comparisonOffReason }, 'automatic comparison with the catalogue disabled');
    }
    if (store.node !== null) {
      started(
        'upkeep of the shared log',
        loaded.startLogUpkeep({ store, node: store.node, log }, io),
      );
    }
    const { summary, dataDir, index, backup } = settings;
    const rules = { ...summary, dataDir, index, rejected: config.rejected };
    const summaries = await loaded.serveSummaries(receiver, rules, log, io);
    started('summaries', summaries);
    const watched = {
      ...settings,
      reconcile: comparisonOffReason === null,
      maintenance: account !== null,
      deliveryState,
      backupEveryHours: backup.folder === null ? null : backup.everyHours,
    };
    started('watchdog', loaded.serveWatchdog(receiver, watched, log, io));
    return { reload: () => summaries.reload(), stop: closers.closeAll };
  } catch (error) {
    await closers.closeAll();
    throw error;
  }
}

async function warnOfUnreadQueues({ administration }: Store, log: Logger): Promise<void> {
  const registrations = await administration.registrations();
  const names = registrations.filter(({ type }) => type === 'pull').map(({ name }) => name);
  if (names.length === 0) return;
  const reason = 'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
  log.error({ subscriptions: names, reason }, 'queues are not read: no account is configured');
}

interface SingleJobsState {
  config: Pick<ConfigWatch, 'rejected'>;
  deliveryState: () => DeliveryState;
}

/** Loads the code of the background jobs only where it is used: other commands start faster. */
async function loadJobs() {
  const modules = await Promise.all([
    import('./marks.ts'),
    import('./storage-jobs.ts'),
    import('../features/summary/job.ts'),
    import('../features/summary/rules.ts'),
    import('../features/alerts/job.ts'),
    import('../features/sinks/job.ts'),
    import('./reload-config.ts'),
    import('../features/shared-log/leadership.ts'),
    import('../features/shared-log/job.ts'),
  ]);
  const [marks, storage, summaries, context, watchdog, sinks, ...others] = modules;
  const [reload, leadership, sharedLog] = others;
  return {
    ...{ ...marks, ...storage, ...summaries, ...context, ...watchdog, ...sinks, ...reload },
    ...{ ...leadership, ...sharedLog },
  };
}

/** Starts compacting, and the pruning and backups that the user has configured. */
function startStorageJobs(
  { startPruning, startCompacting, startBackups }: typeof import('./storage-jobs.ts'),
  started: (name: string, job: Job) => void,
  deps: { parts: { store: Store; log: Logger }; settings: BackgroundConfig; io: Io },
): void {
  const { parts, settings, io } = deps;
  const { keep, backup } = settings;
  const { folder } = backup;
  if (keep !== null) started('pruning', startPruning(parts, { ...settings, keep }, io));
  started('compacting', startCompacting(parts, settings, io));
  if (folder === null) return;
  started(
    'backups',
    startBackups(parts, { ...settings, ...backup, folder, tables: tablesOf(io.features) }, io),
  );
}

/** Returns the summary mode of the rules as they were last read. */
function createMode<Mode>(read: () => Promise<Mode>) {
  const readMode = () => {
    const mode = read();
    // Problems of the rules are logged elsewhere; the status reports them, too.
    mode.catch(() => undefined);
    return mode;
  };
  let mode = readMode();
  const reload = () => {
    mode = readMode();
  };
  return { reload, current: () => mode };
}

/** Returns the account for maintenance; logs the reason and returns null without lasting credentials. */
function maintainedAccount(
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
