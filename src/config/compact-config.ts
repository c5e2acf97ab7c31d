/** Whether a receiver compacts the log by itself. */
import { frozen } from './frozen.ts';
import { type DataConfig, readDataConfig } from './read-config.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';

export interface CompactConfig extends DataConfig {
  compact: boolean;
}

/** Throws one `configuration` error that lists every problem. */
export function readCompactConfig(environment: Environment): Readonly<CompactConfig> {
  const place = readDataConfig(environment);
  const { values, problems } = readVariables(environment, ['compact']);
  refuseProblems(problems);
  return frozen({ ...place, compact: values.compact === 'on' });
}
