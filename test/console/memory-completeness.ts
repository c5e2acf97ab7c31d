/** Coverage in memory, for tests of the private listener. */
import type {
  CompletenessReader,
  Definition,
  HourCoverage,
} from '../../src/domain/completeness.ts';

export function createMemoryCompleteness(
  known: { definitions?: Definition[]; hours?: HourCoverage[] } = {},
): CompletenessReader {
  const { definitions = [], hours = [] } = known;
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
  };
}
