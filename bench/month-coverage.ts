/** Holds the coverage that earshot counted against the truth, hour by hour. */

import { type HourCoverage, hourUs } from '../src/domain/coverage.ts';
import type { LoggedEvent } from './month-log.ts';
import { eventKey, hourKey, type OwedEvent } from './month-truth.ts';
import { fateOf } from './month-verdict.ts';

/** Whole hours; µs since 1970. */
export interface CoveredWindow {
  fromUs: number;
  toUs: number;
}

/**
 * Compares the counts of every hour of a window, looked at last when nothing changed any more, with what the
 * lists show of what was owed. Returns what differs, in words.
 */
export function coverageFaults(
  owed: readonly OwedEvent[],
  logged: readonly LoggedEvent[],
  coverage: readonly HourCoverage[],
  { fromUs, toUs }: CoveredWindow,
): string[] {
  const entries = new Map(logged.map((entry) => [eventKey(entry), entry]));
  const counts = new Map<string, { pushed: number; late: number; recovered: number }>();
  for (const one of owed) {
    if (!one.shown || one.dateUs < fromUs || one.dateUs >= toUs) continue;
    const fate = fateOf(one, entries.get(eventKey(one)));
    if (fate === 'superseded' || fate === 'deleted') continue;
    const key = hourKey(one);
    const hour = counts.get(key) ?? { pushed: 0, late: 0, recovered: 0 };
    hour[fate] += 1;
    counts.set(key, hour);
  }
  const faults: string[] = [];
  for (const { subscription, event, hourUs: at, pushed, late, recovered, missing } of coverage) {
    if (at < fromUs || at + hourUs > toUs) continue;
    const key = hourKey({ subscription, event, dateUs: at });
    const wanted = { ...(counts.get(key) ?? { pushed: 0, late: 0, recovered: 0 }), missing: 0 };
    counts.delete(key);
    const [is, should] = [{ pushed, late, recovered, missing }, wanted].map((one) =>
      JSON.stringify(one, ['pushed', 'late', 'recovered', 'missing']),
    );
    if (is !== should) faults.push(`${key}: ${is} instead of ${should}`);
  }
  return [...faults, ...[...counts.keys()].map((key) => `not compared: ${key}`)];
}
