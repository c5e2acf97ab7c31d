/** How long notifications are kept. */
import type { Keep } from '../domain/pruning.ts';
import { frozen } from './frozen.ts';
import { type DataConfig, readDataConfig } from './read-config.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';

export interface KeepConfig extends DataConfig {
  /** Null where everything is kept. */
  keep: Keep | null;
}

/** What pruning needs. Throws one `configuration` error that lists every problem. */
export function readKeepConfig(environment: Environment): Readonly<KeepConfig> {
  const place = readDataConfig(environment);
  const { values, problems } = readVariables(environment, ['keep']);
  refuseProblems(problems);
  return frozen({ ...place, keep: values.keep ?? null });
}
