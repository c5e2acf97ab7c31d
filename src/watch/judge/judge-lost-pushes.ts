/** Judges whether more events than usual came by no push, and had to be looked up. */
import type { Registration } from '../../domain/administration.ts';
import { type HourCoverage, hourUs } from '../../domain/completeness.ts';
import { areTooMany, lostPushOdds, type TalliedHour, talliedUs } from '../lost-push-odds.ts';
import { countText, momentText, percentText } from '../plain-figures.ts';
import { coverageOf, lastingAlert, type Situation, watchedSpans } from '../situation.ts';
import { type Span, shareOf } from '../spans.ts';
import { nothingWrong, unjudged, type Verdict, wrong } from '../verdict.ts';

const kind = 'lost-pushes';
/** A push may come so much later than its event: until then we must have been up. */
const settleUs = hourUs / 6;
/**
 * So long after its end an hour counts. It is compared before, and a push that comes after its event was fetched is
 * taken off what was lost: a catalogue that is an hour late has lost nothing.
 */
export const countedUs = hourUs + settleUs;
/** A moment's break is no downtime. */
const upShareMin = 0.999;

/** Rests on hours in which we were up all the time: what our own downtime lost is no news. */
export function judgeLostPushes({ name }: Registration, situation: Situation): Verdict {
  const { nowUs } = situation;
  const coverage = coverageOf(situation, name);
  const hours = talliedHours(coverage, watchedSpans(situation, name), nowUs);
  const lasting = lastingAlert(situation, kind, name);
  const found = lostPushOdds(hours, nowUs, lasting?.raisedAtUs);
  if (found === null) return unjudged;
  if (!areTooMany(found, lasting !== undefined)) return nothingWrong(kind, name);
  const { lost, expected } = found.latest;
  const sinceText = momentText(found.sinceUs);
  return wrong({
    kind,
    subject: name,
    severity: lost * 2 > expected ? 'critical' : 'warning',
    cause: `The subscription ${name} brings less by push than it should: ${countText(lost)} of ${countText(expected)} events came by no push.`,
    evidence: [
      `That is ${percentText(lost / expected)} since ${sinceText}; ${percentText(found.usual)} is taken for usual.`,
      'Only hours in which earshot was up all the time are counted.',
    ],
    nextStep:
      'Run `earshot doctor` to see whether the catalogue can reach this endpoint, and `earshot coverage --since 7d` to see when it began.',
  });
}

/** Of all events together, oldest first. */
function talliedHours(
  coverage: readonly HourCoverage[],
  watched: readonly Span[],
  nowUs: number,
): TalliedHour[] {
  const byHour = new Map<number, TalliedHour>();
  for (const { hourUs: startUs, expected, recovered, missing } of coverage) {
    if (startUs < nowUs - talliedUs || startUs + hourUs + countedUs > nowUs) continue;
    const known = byHour.get(startUs) ?? { startUs, expected: 0, lost: 0 };
    const lost = known.lost + recovered + missing;
    byHour.set(startUs, { startUs, expected: known.expected + expected, lost });
  }
  return [...byHour.values()]
    .filter(({ startUs: us }) => shareOf(watched, us, us + hourUs + settleUs) >= upShareMin)
    .sort((a, b) => a.startUs - b.startUs);
}
