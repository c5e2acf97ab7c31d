/** Days that are left in full, so that every view of a certificate shows the same number. Below 0 after the end. */
export function wholeDays(us: number): number {
  return Math.floor(us / 86_400_000_000);
}
