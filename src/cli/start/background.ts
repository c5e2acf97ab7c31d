/** Background jobs of a receiver: maintenance, summaries, comparison, watchdog, sinks, backups, pruning. */
import {
  type AccountConfig,
  type CompleteAccountConfig,
  comparisonOff,
  completeAccountConfig,
  type StartConfig,
} from '../../config/config.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Closers } from '../closers.ts';
import type { Io } from '../io.ts';
import type { MaintenanceLoop } from './maintenance.ts';
import type { RunningReceiver } from './serve.ts';

export interface BesideConfig extends StartConfig {
  /** Of earshot. */
  version: string;
}

/** Dependencies of the background jobs; each job is added to the closers as soon as it runs. */
interface Deps {
  log: Logger;
  io: Io;
  closers: Closers;
}

/** Starts every background job that is configured. None of them delays intake. */
export async function startBeside(
  receiver: RunningReceiver,
  settings: BesideConfig,
  { log, io, closers }: Deps,
): Promise<void> {
  const [
    { startUptimeMarks },
    { serveSummaries },
    { summaryModeOf },
    { serveWatchdog },
    { serveSinks },
    { watchConfig },
  ] = await loadJobs();
  const { version, summary, backup, dataDir, index } = settings;
  const { completeness } = receiver.store;
  const config = await watchConfig(io.workingDir, log);
  const uptime = startUptimeMarks({ completeness, nowUs: io.nowUs, log });
  closers.add(() => uptime.stop(), 'uptime marks');
  const maintenance = await maintainBeside(receiver, settings, log, io);
  closers.add(() => maintenance?.stop(), 'maintenance');
  const whyNotCompared = await reconcileBeside(receiver, settings, { log, io, closers });
  const pruning = await pruneBeside(receiver, settings, log, io);
  closers.add(() => pruning?.stop(), 'pruning');
  const compacting = await compactBeside(receiver, settings, log, io);
  closers.add(() => compacting?.stop(), 'compacting');
  const backups = await backUpBeside(receiver, settings, log, io);
  closers.add(() => backups?.stop(), 'backups');
  const backupEveryHours = backup.folder === null ? null : backup.everyHours;
  const rules = { ...summary, dataDir, index, rejected: config.rejected };
  const summaries = await serveSummaries(receiver, rules, log, io);
  closers.add(() => summaries.stop(), 'summaries');
  const sinks = await serveSinks(receiver, { dataDir }, log, io);
  closers.add(() => sinks.stop(), 'sinks');
  const handingOver = () => ({ ...sinks.handingOver(), rejected: config.rejected() });
  const watched = {
    ...settings,
    reconcile: whyNotCompared === null,
    maintenance: maintenance !== undefined,
    handingOver,
    backupEveryHours,
  };
  const watchdog = serveWatchdog(receiver, watched, log, io);
  closers.add(() => watchdog.stop(), 'watchdog');
  const mode = createMode(() => summaryModeOf(summary, io.workingDir));
  receiver.tellBeside({
    version,
    handingOver,
    summaryMode: mode.current,
    backupEveryHours,
    comparisonOff: whyNotCompared,
  });
  config.start(async (loaded) => {
    await sinks.change(loaded);
    await summaries.reload();
    mode.reload();
  });
  closers.add(() => config.stop(), 'configuration file');
}

/** Loads the code of the background jobs, which other commands do not need. */
function loadJobs() {
  return Promise.all([
    import('./marks.ts'),
    import('./summaries.ts'),
    import('../summaries/summary-context.ts'),
    import('./watchdog.ts'),
    import('./sinks.ts'),
    import('./reload-config.ts'),
  ]);
}

/** The summary mode as the rules were read last. */
function createMode<Mode>(read: () => Promise<Mode>) {
  const readMode = () => {
    const mode = read();
    // Faults of the rules have been logged; here they show in the status.
    mode.catch(() => undefined);
    return mode;
  };
  let mode = readMode();
  const reload = () => {
    mode = readMode();
  };
  return { reload, current: () => mode };
}

/** Nothing is ever removed where nobody has said what is to be kept. */
async function pruneBeside(
  { store }: RunningReceiver,
  { dataDir, keep }: BesideConfig,
  log: Logger,
  io: Io,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (keep === null) return undefined;
  const { startPruning } = await import('./storage-jobs.ts');
  return startPruning({ store, log }, { dataDir, keep }, io);
}

async function compactBeside(
  { store }: RunningReceiver,
  { compact, dataDir, diskReserveBytes }: BesideConfig,
  log: Logger,
  io: Io,
): Promise<{ stop(): Promise<void> } | undefined> {
  if (!compact) return undefined;
  const { startCompacting } = await import('./storage-jobs.ts');
  return startCompacting({ store, log }, { dataDir, diskReserveBytes }, io);
}

/** None are made where nobody has said where to. */
async function backUpBeside(
  { store }: RunningReceiver,
  { backup, version, dataDir, diskReserveBytes }: BesideConfig,
  log: Logger,
  io: Io,
): Promise<{ stop(): Promise<void> } | undefined> {
  const { folder } = backup;
  if (folder === null) return undefined;
  const { startBackups } = await import('./storage-jobs.ts');
  return startBackups(
    { store, log },
    { ...backup, folder, version, dataDir, diskReserveBytes },
    io,
  );
}

/** Resolves with the reason when the log is not compared with the catalogue automatically; null when it is. */
async function reconcileBeside(
  { store, products }: RunningReceiver,
  settings: BesideConfig,
  { log, io, closers }: Deps,
): Promise<string | null> {
  const reason = comparisonOff(settings);
  if (reason !== null) {
    log.info({ reason }, 'the log is not compared with the catalogue automatically');
    return reason;
  }
  const { startReconcile } = await import('./reconcile.ts');
  const loop = startReconcile({ store, products, log }, settings, io);
  closers.add(() => loop.stop(), 'reconcile');
  return null;
}

/** Starts maintenance when there is an account to maintain; says so when there is not. */
async function maintainBeside(
  { store }: RunningReceiver,
  config: AccountConfig,
  log: Logger,
  io: Io,
): Promise<MaintenanceLoop | undefined> {
  const complete = completeAccountConfig(config);
  const reason = 'missing' in complete ? complete.missing.join(' ') : shortLivedReason(complete);
  if ('missing' in complete || reason !== null) {
    log.info({ reason }, 'maintenance of the subscriptions is off');
    return undefined;
  }
  const { maintenanceRound, startMaintenance } = await import('./maintenance.ts');
  const { random } = io;
  return startMaintenance({ round: () => maintenanceRound(complete, store, io), log, random });
}

/** Why maintenance cannot live on what is configured; null when it can. */
function shortLivedReason({ account }: CompleteAccountConfig): string | null {
  if (account.kind === 'token') {
    return 'EARSHOT_ACCESS_TOKEN ends after minutes. Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
  }
  if (account.totp !== undefined && /^\d{6}$/.test(account.totp)) {
    return 'EARSHOT_ACCOUNT_TOTP is a code, which is good once. Set it to the shared secret.';
  }
  return null;
}
