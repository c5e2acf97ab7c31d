/** The watchdog of a running receiver. */

import { asCalled } from '../../core/cli/called-as.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import type { ServeConfig } from '../../core/config/config.ts';
import type { Job } from '../../core/host/job.ts';
import { createRunProgram } from '../../core/host/run-program.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { RunningReceiver } from '../../receiver/serve.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import type { DeliveryState } from '../sinks/terms.ts';
import type { AlertMessage } from './message.ts';
import { createCommandSender, createUrlSender } from './notify.ts';
import type { ChannelConfig } from './settings.ts';
import type { AlertSender, WatchDeps } from './watch-deps.ts';
import { watchProbes } from './watch-probes.ts';
import { startWatchdog } from './watchdog.ts';

/**
 * `maintenance` and `reconcile` are true while these jobs run; alerts advise accordingly. `backupEveryHours` is the
 * interval of automatic backups; null for none.
 */
export function serveWatchdog(
  { store }: Pick<RunningReceiver, 'store'>,
  config: ChannelConfig &
    Pick<ServeConfig, 'tls'> &
    DataPlace & {
      maintenance: boolean;
      reconcile: boolean;
      deliveryState: () => DeliveryState;
      backupEveryHours: number | null;
    },
  log: Logger,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env' | 'onExit'>,
): Job {
  const { completeness, alerts, administration, sinks, backups } = store;
  const { maintenance, reconcile, deliveryState, backupEveryHours } = config;
  return startWatchdog({
    ...{ completeness, alerts, administration, sinks, backups, deliveryState },
    notifications: store,
    probes: watchProbes(config, store),
    senders: alertSenders(config, io),
    nowUs: io.nowUs,
    random: io.random,
    pause,
    log,
    maintenance,
    reconcile,
    backupEveryHours,
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
