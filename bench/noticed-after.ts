/** How soon something was noticed, of many subscriptions. */

/**
 * The hours after which a share of the subscriptions had noticed it. Null in `hours` and as the result: not within
 * the time that was simulated.
 */
export function noticedAfter(share: number, hours: readonly (number | null)[]): number | null {
  const sorted = hours.map((one) => one ?? Infinity).sort((a, b) => a - b);
  const found = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Infinity;
  return Number.isFinite(found) ? found : null;
}
