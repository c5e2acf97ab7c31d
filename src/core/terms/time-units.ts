/** Lengths of time units, in microseconds; names that end in `Ms` are in milliseconds. */

export const secondUs = 1_000_000;
export const minuteUs = 60 * secondUs;
export const hourUs = 60 * minuteUs;
export const dayUs = 24 * hourUs;
export const weekUs = 7 * dayUs;

export const minuteMs = 60_000;
export const hourMs = 60 * minuteMs;

/** Returns the start of the hour of a time. */
export function hourOf(us: number): number {
  return Math.floor(us / hourUs) * hourUs;
}
