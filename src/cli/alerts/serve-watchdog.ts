/** The watchdog inside a receiver that serves. */
import { lifetimeOf } from '../../admin/maintenance/lifetimes.ts';
import type { ServeConfig, WatchConfig } from '../../config/config.ts';
import type { Logger } from '../../domain/ports.ts';
import type { DataPlace } from '../../store/disk-limit.ts';
import type { HandingOver } from '../../watch/watch-world.ts';
import { startWatchdog, type Watchdog } from '../../watch/watchdog.ts';
import type { Io } from '../io.ts';
import type { RunningReceiver } from '../serve.ts';
import { pause } from '../until-aborted.ts';
import { watchProbes } from '../watch-probes.ts';
import { alertTellers } from './alert-tellers.ts';

/**
 * `maintenance` and `reconcile` say what else looks after things, so that alerts name the right next step;
 * `handingOver` how it stands with the sinks, `backupEveryHours` how often a backup is made; null where none is.
 */
export function serveWatchdog(
  { store }: Pick<RunningReceiver, 'store'>,
  config: WatchConfig &
    Pick<ServeConfig, 'tls'> &
    DataPlace & {
      maintenance: boolean;
      handingOver: () => HandingOver;
      backupEveryHours: number | null;
    },
  log: Logger,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch' | 'env'>,
): Watchdog {
  const { completeness, alerts, administration, sinks, backups } = store;
  const { maintenance, reconcile, handingOver, backupEveryHours } = config;
  return startWatchdog({
    ...{ completeness, alerts, administration, sinks, backups, notifications: store, handingOver },
    probes: watchProbes(config, store, io),
    lifetimes: (known) => lifetimeOf({ ...known, listed: undefined }),
    ...alertTellers(config, io),
    nowUs: io.nowUs,
    random: io.random,
    pause,
    log,
    maintenance,
    reconcile,
    backupEveryHours,
  });
}
