/** Judges whether events are missing: those of the last seven days. */
import { sumCounts } from '../../domain/coverage-report.ts';
import type { CoverageStatus } from '../../domain/status.ts';
import { counted, whole } from '../sinks/counted.ts';
import { isWatched, type Judge, unused, warning, well } from './judgement.ts';

export const judgeCoverage: Judge = (facts) => {
  const { coverage } = facts;
  if (coverage.length === 0) return unused('nothing to compare yet');
  const { expected, missing, recovered, late } = sumOf(coverage);
  const unknown = coverage.reduce((sum, { unknownHours }) => sum + unknownHours, 0);
  // The watchdog bears with it for an hour: somebody may only be checking, and fetch then.
  if (missing > 0 && !isWatched(facts)) {
    return warning(
      `${counted(missing, 'event')} of the last 7 days ${missing === 1 ? 'is' : 'are'} not in the log.`,
      'Run `earshot reconcile --since 7d` to fetch them.',
    );
  }
  const counts = [
    missing === 0 ? 'none missing' : `${whole(missing)} missing`,
    ...(recovered === 0 ? [] : [`${whole(recovered)} fetched`]),
    ...(late === 0 ? [] : [`${whole(late)} late`]),
    ...(unknown === 0 ? [] : [`${counted(unknown, 'hour')} not compared`]),
  ];
  return well(`7 days, ${counted(expected, 'event')}: ${counts.join(', ')}`);
};

const sumOf = (coverage: readonly CoverageStatus[]) =>
  sumCounts(coverage.map((one) => ({ ...one, pushed: 0 })));
