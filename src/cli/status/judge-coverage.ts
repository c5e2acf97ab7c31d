/** Checks whether events of the last seven days are missing, and how much of that time was compared. */
import { sumCoverage } from '../../domain/coverage-report.ts';
import type { StatusFacts } from '../../domain/status.ts';
import { isDue, notComparedText } from '../coverage/not-compared.ts';
import { counted, whole } from '../sinks/counted.ts';
import { isWatched, type Judge, listed, unused, warning, well } from './judgement.ts';

export const judgeCoverage: Judge = (facts) => {
  const { coverage, atUs } = facts;
  const sum = sumCoverage(coverage);
  if (sum === null) return unused('no subscription is registered, so no event is expected');
  const comparisonOff = isWatched(facts) ? facts.comparisonOff : 'No receiver runs.';
  if (sum.state === 'not-compared') {
    const when = { comparisonOff, nowUs: atUs };
    const part = unused(notComparedText(sum, when));
    return isDue(sum, when)
      ? { ...part, nextStep: 'Run `earshot reconcile` to compare now.' }
      : part;
  }
  const { expected, missing, recovered, late, comparedHours, unknownHours } = sum;
  // The watchdog waits for an hour: a person may only be checking, and fetch then.
  if (missing > 0 && !isWatched(facts)) {
    return warning(
      `${counted(missing, 'event')} of the last 7 days ${missing === 1 ? 'is' : 'are'} missing.`,
      'Run `earshot reconcile --since 7d` to recover them.',
    );
  }
  const counts = [
    missing === 0 ? 'none missing' : `${whole(missing)} missing`,
    ...(recovered === 0 ? [] : [`${whole(recovered)} recovered`]),
    ...(late === 0 ? [] : [`${whole(late)} late`]),
  ];
  const due = comparedHours + unknownHours;
  const hours = `${whole(comparedHours)} of ${whole(due)} h compared`;
  const found = `${counted(expected, 'event')}: ${counts.join(', ')}`;
  return well([`7 days, ${hours}; ${found}`, ...openText(facts)].join('; '));
};

/** What the counts leave out. */
function openText({ coverage, comparisonOff, receiver }: StatusFacts): string[] {
  const open = coverage.filter(({ state }) => state === 'not-compared');
  const names = listed(open.map(({ subscription }) => subscription));
  return [
    ...(open.length === 0 ? [] : [`no hour of ${names} was compared yet`]),
    ...(receiver === null || comparisonOff === null
      ? []
      : [`not compared automatically: ${comparisonOff.replace(/\.$/, '')}`]),
  ];
}
