/** Waits that differ by chance, so that many who failed together do not come back together. */

/**
 * A wait of about this length, in its own unit: by up to a share of it, a quarter unless told, shorter or longer.
 * `random` gives numbers in [0, 1).
 */
export function jittered(wait: number, random: () => number, share = 0.25): number {
  return wait * (1 - share + 2 * share * random());
}
