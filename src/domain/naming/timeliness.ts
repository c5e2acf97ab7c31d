/** How soon a product is made, in the codes that Sentinel-3 and Sentinel-6 share. */

const words: Readonly<Record<string, string>> = {
  NR: 'near real time (NR)',
  ST: 'short-time-critical (ST)',
  NT: 'non-time-critical (NT)',
};

/** For a code as names and attributes spell it: `NR`; null for an unknown one. */
export function timelinessOfCode(code: string): string | null {
  return Object.hasOwn(words, code) ? (words[code] ?? null) : null;
}
