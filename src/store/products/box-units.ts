/**
 * The units of the box index. It splits its nodes along the longest side, so times and positions must be
 * of the size of degrees: then a node covers a few degrees, a few days, some tens of percent of cloud.
 * SQLite keeps 32 bits of each and widens what they cannot hold, by some seconds or positions; the
 * columns decide.
 */

const epochUs = Date.UTC(2000, 0, 1) * 1000;
const dayUs = 86_400_000_000;

/** About what a catalogue publishes in a day (facts, catalogue 7). */
const positionsPerUnit = 32_768;

/** A moment as days since 2000. */
export function sensingDays(us: number): number {
  return (us - epochUs) / dayUs;
}

/** A position of the log, which is a product's id. */
export function heardUnits(position: number): number {
  return position / positionsPerUnit;
}

/** What lies beyond stands at the end of the scale, as bounds do: 32 bits do not reach everywhere. */
const cloudUnitsMax = 1_000;

/** Cloud cover in tens of percent. What has none is far from all that has. */
export function cloudUnits(percent: number | null): number {
  if (percent === null) return cloudUnitsMax;
  return Math.min(cloudUnitsMax, Math.max(-cloudUnitsMax, percent / 10));
}
