/** How missing events are looked up, and where alerts are told. */
import type { Account } from '../domain/account.ts';
import { readAccountConfig } from './account-config.ts';
import { frozen } from './frozen.ts';
import type { DataConfig } from './read-config.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';

export interface ReconcileConfig extends DataConfig {
  catalogueUrl: string;
  /** For a catalogue that wants to know who asks for its lists; null when nothing says so. */
  account: Account | null;
  requestsPerMinute: number;
}

export interface WatchConfig {
  /** Whether the receiver compares by itself. */
  reconcile: boolean;
  alertUrl: string | null;
  /** A program and its arguments. */
  alertCommand: readonly string[] | null;
}

/** What `reconcile` needs. Throws one `configuration` error that lists every problem. */
export function readReconcileConfig(environment: Environment): Readonly<ReconcileConfig> {
  const { dataDir, catalogueUrl, account } = readAccountConfig(environment);
  const { values, problems } = readVariables(environment, [
    'reconcileRequestsPerMinute',
    'diskReserve',
  ]);
  refuseProblems(problems);
  const { reconcileRequestsPerMinute: requestsPerMinute, diskReserve: diskReserveBytes } = values;
  return frozen({ dataDir, diskReserveBytes, catalogueUrl, account, requestsPerMinute });
}

/** Why the receiver does not compare automatically with these settings; null when it does. */
export function comparisonOff({
  reconcile,
  index,
}: {
  reconcile: boolean;
  index: boolean;
}): string | null {
  if (!reconcile) return 'EARSHOT_RECONCILE is off.';
  return index ? null : 'EARSHOT_INDEX is off, and a comparison uses the product index.';
}

/** The settings of `coverage`. Throws one `configuration` error that lists every problem. */
export function readCoverageConfig(
  environment: Environment,
): Readonly<{ dataDir: string; comparisonOff: string | null }> {
  const { values, problems } = readVariables(environment, ['dataDir', 'reconcile', 'index']);
  refuseProblems(problems);
  const { dataDir, reconcile, index } = values;
  const off = comparisonOff({ reconcile: reconcile === 'on', index: index === 'on' });
  return frozen({ dataDir, comparisonOff: off });
}

/** What `start` needs besides. Throws one `configuration` error that lists every problem. */
export function readWatchConfig(environment: Environment): Readonly<WatchConfig> {
  const { values, problems } = readVariables(environment, [
    'reconcile',
    'alertUrl',
    'alertCommand',
  ]);
  refuseProblems(problems);
  const { reconcile, alertUrl = null, alertCommand = null } = values;
  return frozen({ reconcile: reconcile === 'on', alertUrl, alertCommand });
}
