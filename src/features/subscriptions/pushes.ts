/** Time spans, and the rule for lost pushes. */
import { hourUs } from '../../core/terms/dates.ts';
import type { HourCoverage } from '../coverage/completeness.ts';

/** A time span from `fromUs` (inclusive) to `toUs` (exclusive). */
export interface Span {
  fromUs: number;
  toUs: number;
}

/** Returns the spans without their overlaps with others, which may come in any order and overlap each other. */
export function without(spans: readonly Span[], others: readonly Span[]): Span[] {
  return others.reduce<Span[]>(
    (rest, other) =>
      rest.flatMap(({ fromUs, toUs }) =>
        // The parts before and after the other span.
        [
          { fromUs, toUs: Math.min(toUs, other.fromUs) },
          { fromUs: Math.max(fromUs, other.toUs), toUs },
        ].filter((part) => part.fromUs < part.toUs),
      ),
    [...spans],
  );
}

/** Returns the part of a span that is covered by others, which do not overlap each other. */
function coveredUs(spans: readonly Span[], { fromUs, toUs }: Span): number {
  return spans.reduce(
    (sum, one) => sum + Math.max(0, Math.min(one.toUs, toUs) - Math.max(one.fromUs, fromUs)),
    0,
  );
}

/** Number of hours in which losses are counted. */
const hoursMax = 24;

/** Losses that raise the alert: a number and a share of the events. */
const lostMin = 3;
const lostShareMin = 0.2;

/** Maximum usual delay of a push after its event; the receiver must have been up until then. */
const pushDelayUs = hourUs / 6;

/**
 * Time after the end of an hour until it is counted. It is compared earlier, and a push that arrives after its event
 * was fetched is no longer counted as lost: a catalogue with an hour of delay has lost nothing.
 */
export const countedUs = hourUs + pushDelayUs;

/** Minimum share of an hour with the receiver up, as a short interruption is no downtime. */
const upShareMin = 0.999;

/**
 * Returns how many events of the latest counted hours were not pushed; null without such an hour. Ignores hours in
 * which pushes could not be received: losses caused by our own downtime are known. `areTooMany` is true when they raise
 * an alert, or keep an active one: half as many are enough for that.
 */
export function lostPushes(
  coverage: readonly Pick<HourCoverage, 'hourUs' | 'expected' | 'recovered' | 'missing'>[],
  { watched, nowUs, isActive }: { watched: readonly Span[]; nowUs: number; isActive: boolean },
) {
  const neededUs = hourUs + pushDelayUs;
  const counted = coverage.filter(
    ({ hourUs: us }) =>
      us + hourUs + countedUs <= nowUs &&
      coveredUs(watched, { fromUs: us, toUs: us + neededUs }) >= upShareMin * neededUs,
  );
  const starts = [...new Set(counted.map((hour) => hour.hourUs))].sort((a, b) => b - a);
  const startUs = starts.slice(0, hoursMax).at(-1);
  if (startUs === undefined) return null;
  const latest = counted.filter((hour) => hour.hourUs >= startUs);
  const expected = latest.reduce((sum, hour) => sum + hour.expected, 0);
  const lost = latest.reduce((sum, hour) => sum + hour.recovered + hour.missing, 0);
  const areTooMany = lost >= Math.max(lostMin, lostShareMin * expected) / (isActive ? 2 : 1);
  return { startUs, expected, lost, areTooMany };
}
