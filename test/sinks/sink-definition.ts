/** A sink to begin with; this file is loaded without a test runner, too. */
import type { SinkDefinition } from '../../src/sinks/registry.ts';

/** Takes everything from the start of the log, unless told. */
export function definition(
  target: SinkDefinition['target'],
  fields: Partial<SinkDefinition> = {},
): SinkDefinition {
  return {
    name: 'sink',
    target,
    subscriptions: [],
    events: [],
    filter: '',
    startAt: 'start',
    concurrency: 4,
    timeoutMs: 10_000,
    attemptsMax: 5,
    ...fields,
  };
}
