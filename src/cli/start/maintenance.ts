/** Maintenance inside a receiver that serves: a round every few hours, and never in its way. */
import type { ProbeEndpoint } from '../../admin/endpoint-probe.ts';
import type { MaintenanceResult } from '../../admin/maintain.ts';
import { noteText } from '../../admin/review.ts';
import type { CompleteAccountConfig } from '../../config/config.ts';
import { readCredentialsFile } from '../../config/endpoint-credentials.ts';
import { loadSubscriptionsFile } from '../../config/subscriptions-file.ts';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { doRounds } from '../../domain/rounds.ts';
import type { Store } from '../../store/store.ts';
import type { AccountIo } from '../account.ts';
import { type Io, pause } from '../io.ts';

const hourMs = 3_600_000;

/** What tests make shorter. All times are jittered by a tenth. */
export interface MaintenanceTiming {
  /** After the start: the endpoint should answer by then. */
  firstMs: number;
  intervalMs: number;
  /** After a failure, doubling up to the interval. */
  retryMs: number;
}

const usual: MaintenanceTiming = { firstMs: 60_000, intervalMs: 6 * hourMs, retryMs: 300_000 };

/** A round that is under way when the program ends: it can be cut anywhere. */
const stopGraceMs = 3_000;

export interface MaintenanceLoop {
  stop(): Promise<void>;
}

/** Starts the loop. Whatever fails is logged, and tried again later. */
export function startMaintenance(options: {
  round: () => Promise<MaintenanceResult[]>;
  log: Logger;
  random: () => number;
  timing?: Partial<MaintenanceTiming>;
}): MaintenanceLoop {
  const { round, log, random } = options;
  const stopping = new AbortController();
  const { signal } = stopping;
  const running = doRounds(
    () => tryRound(round, log, signal),
    { ...usual, ...options.timing },
    { pause, random, signal },
  );
  return {
    stop: async () => {
      stopping.abort();
      const enough = new AbortController();
      await Promise.race([running, pause(stopGraceMs, enough.signal)]);
      enough.abort();
    },
  };
}

/** One round over a store that is open: with the configuration, files and credentials of that moment. */
export async function maintenanceRound(
  config: CompleteAccountConfig,
  store: Pick<Store, 'administration'>,
  io: AccountIo & Pick<Io, 'workingDir'>,
): Promise<MaintenanceResult[]> {
  const [{ createAccountContext }, { maintain }, { createTakeLock }] = await Promise.all([
    import('../account.ts'),
    import('../../admin/maintain.ts'),
    import('../../store/engine/locks.ts'),
  ]);
  const { dataDir, endpoint } = config;
  const inFile = await loadSubscriptionsFile(io.workingDir);
  const release = await createTakeLock(dataDir)('subscriptions', { waitMs: 0 });
  try {
    // Read under the lock: a rotation may have just ended.
    const pairs = endpoint.source === 'file' ? readCredentialsFile(dataDir) : null;
    const credentials = (pairs ?? endpoint.pairs).at(-1);
    if (credentials === undefined) {
      throw new AppError('configuration', 'There are no endpoint credentials.', {
        advice: 'Run `earshot credentials create`, and restart the receiver.',
      });
    }
    const world = createAccountContext(config, credentials, store, io);
    return await maintain({ inFile }, { ...world, probe: besideReceiver(world.probe) });
  } finally {
    release();
  }
}

/**
 * The receiver runs in this very process. That it cannot be reached from here, as behind many routers,
 * says nothing; what answers in its place, and the certificate, still do.
 */
function besideReceiver(probe: ProbeEndpoint): ProbeEndpoint {
  return async (endpoint, credentials) => {
    const report = await probe(endpoint, credentials);
    return report.fault?.stage === 'connection' ? { ...report, fault: null } : report;
  };
}

/** True when all went well. */
async function tryRound(
  round: () => Promise<MaintenanceResult[]>,
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const results = await round();
    for (const result of results) logResult(result, log);
    return results.every(({ failure }) => failure === null);
  } catch (error) {
    if (signal.aborted) return true;
    if (isAppError(error, 'conflict')) {
      // A command of the user holds the account: a rotation may take its minutes.
      log.info({ reason: errorText(error) }, 'maintenance waits for another command');
      return false;
    }
    const expected = error instanceof AppError && error.code !== 'internal';
    const fields = expected ? { reason: errorText(error), details: error.details } : { err: error };
    log.error(fields, 'maintenance failed; it is tried again, and intake goes on');
    return false;
  }
}

function logResult(result: MaintenanceResult, log: Logger): void {
  const { name, status, did, notes, news, failure } = result;
  const fields = { subscription: name, status };
  if (did !== null) log.info({ ...fields, did }, 'maintenance acted');
  if (failure !== null) log.error({ ...fields, reason: failure }, 'maintenance could not act');
  if (!news) return;
  for (const note of notes) log.warn({ ...fields, note: noteText(note) }, 'maintenance reports');
}
