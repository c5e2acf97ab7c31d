/** Writes times in the three forms that records, product names and storage paths use. */

/**
 * ISO 8601 in UTC with six fractional digits, as in `2026-01-01T01:16:00.346278Z`.
 * `atMs` is whole ms since 1970, `microseconds` (0 to 999) what lies beyond them.
 */
export function toTimestamp(atMs: number, microseconds = 0): string {
  return `${new Date(atMs).toISOString().slice(0, -1)}${String(microseconds).padStart(3, '0')}Z`;
}

/** Seconds precision without separators, as in `20260101T011600`; what is below a second is cut. */
export function toNameTime(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
}

/** The folder of a day, as in `2026/01/01`. */
export function toDayFolder(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '/');
}
