/** Coverage in memory, for tests of the private listener. */
import type { CompletenessReader, Definition, HourCoverage } from '../../src/domain/coverage.ts';

export function createMemoryCompleteness(
  known: { definitions?: Definition[]; hours?: HourCoverage[]; wholeSinceUs?: number } = {},
): CompletenessReader {
  const { definitions = [], hours = [], wholeSinceUs = 0 } = known;
  return {
    recoveredEvents: async () => [],
    definitions: async () => definitions,
    uptimes: async () => [],
    coverage: async ({ sinceUs, untilUs, subscription }) =>
      hours.filter(
        (one) =>
          one.hourUs >= sinceUs &&
          one.hourUs < untilUs &&
          (subscription === undefined || one.subscription === subscription),
      ),
    arrivals: async () => [],
    wholeSinceUs: async () => wholeSinceUs,
  };
}
