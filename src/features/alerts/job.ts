/** The watchdog of a running receiver. */

import { asCalled } from '../../core/cli/called-as.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import type { StartConfig } from '../../core/config/config.ts';
import type { Job } from '../../core/host/job.ts';
import { createRunProgram } from '../../core/host/run-program.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningJob } from '../../receiver/job-slot.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import type { DeliveryState } from '../sinks/terms.ts';
import type { AlertMessage } from './message.ts';
import { createCommandSender, createUrlSender } from './notify.ts';
import type { ChannelConfig } from './settings.ts';
import type { AlertSender, WatchDeps } from './watch-deps.ts';
import { watchProbes } from './watch-probes.ts';
import { startWatchdog } from './watchdog.ts';

/** Alerts advise according to the jobs that run. */
export function serveWatchdog(
  { store }: Pick<RunningReceiver, 'store'>,
  config: StartConfig,
  jobs: ReadonlyMap<string, RunningJob>,
  log: Logger,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env' | 'onExit'>,
): Job {
  const { completeness, alerts, administration, sinks, backups } = store;
  const { folder, everyHours } = config.backup;
  const deliveryState = jobs.get('sinks')?.state as () => DeliveryState;
  return startWatchdog({
    ...{ completeness, alerts, administration, sinks, backups, deliveryState },
    notifications: store,
    probes: watchProbes(config, store),
    senders: alertSenders(config, io),
    nowUs: io.nowUs,
    random: io.random,
    pause,
    log,
    maintenance: jobs.has('maintenance'),
    reconcile: jobs.has('reconcile'),
    backupEveryHours: folder === null ? null : everyHours,
  });
}

/** Returns the senders of the configured notification channels. */
export function alertSenders(
  { alertUrl, alertCommand }: Pick<ChannelConfig, 'alertUrl' | 'alertCommand'>,
  { fetch, random, ...host }: Pick<Io, 'fetch' | 'random' | 'env' | 'onExit'>,
): WatchDeps['senders'] {
  const named = (send: AlertSender): AlertSender => {
    return (message, signal) => send(withCommands(message, host), signal);
  };
  return {
    ...(alertUrl !== null && { url: named(createUrlSender(alertUrl, { fetch, random })) }),
    ...(alertCommand !== null && {
      command: named(createCommandSender(alertCommand, createRunProgram(host))),
    }),
  };
}

/** Names commands as the receiver was called: its machine runs them. */
function withCommands(message: AlertMessage, io: Pick<Io, 'env'>): AlertMessage {
  const { text, problem, nextStep } = message;
  const named = (one: string) => asCalled(one, io);
  return { ...message, text: named(text), problem: named(problem), nextStep: named(nextStep) };
}
