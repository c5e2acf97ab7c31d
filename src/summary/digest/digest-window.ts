/** The windows that digests tell of: hours, days, and weeks from Monday on (ISO 8601), in UTC. */
import type { DigestWindow } from '../../domain/summaries.ts';

/** Microseconds since 1970, UTC: from (included), until (excluded). */
export interface WindowSpan {
  fromUs: number;
  untilUs: number;
}

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

const lengthsUs: Readonly<Record<DigestWindow, number>> = {
  hour: hourUs,
  day: dayUs,
  week: 7 * dayUs,
};

/** A Monday: 1 January 1970 was a Thursday. */
const firstWindowUs = -3 * dayUs;

/** The window that a moment lies in. */
export function windowAt(window: DigestWindow, atUs: number): WindowSpan {
  const lengthUs = lengthsUs[window];
  const fromUs = Math.floor((atUs - firstWindowUs) / lengthUs) * lengthUs + firstWindowUs;
  return { fromUs, untilUs: fromUs + lengthUs };
}

/** The windows that a span touches, the earliest first, and cut to it; none for an empty span. */
export function windowsIn(window: DigestWindow, fromUs: number, untilUs: number): WindowSpan[] {
  const windows: WindowSpan[] = [];
  let startUs = fromUs;
  while (startUs < untilUs) {
    const endUs = Math.min(windowAt(window, startUs).untilUs, untilUs);
    windows.push({ fromUs: startUs, untilUs: endUs });
    startUs = endUs;
  }
  return windows;
}
