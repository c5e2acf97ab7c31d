/** The middle of several measurements, and how far they lie apart. */

/** Half of the measurements lie between the two quartiles. */
export interface Spread {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
}

/**
 * The median; of an even number the mean of the two in the middle. Null when any value is null or
 * there is none, because a median of a part would pass for one of the whole.
 */
export function median(values: readonly (number | null)[]): number | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0 || sorted.length < values.length) return null;
  const lower = sorted[Math.floor((sorted.length - 1) / 2)];
  const upper = sorted[Math.floor(sorted.length / 2)];
  return lower === undefined || upper === undefined ? null : (lower + upper) / 2;
}

/** Quartiles between two measurements are interpolated. Null as for `median`. */
export function spreadOf(values: readonly (number | null)[]): Spread | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  const middle = median(values);
  if (middle === null) return null;
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)] ?? middle;
    const above = sorted[Math.ceil(place)] ?? middle;
    return below + (above - below) * (place - Math.floor(place));
  };
  return { median: middle, lowerQuartile: at(0.25), upperQuartile: at(0.75) };
}
