/** Changes many rows in several transactions, so that none holds intake up for long. */

/** Rows that one transaction changes at the most, some 20 ms; more than these wait for the next one. */
export const changedMax = 5_000;

/** Repeats a change of at most `changedMax` rows until none is left. Resolves with how many they were. */
export async function changeAll(changeSome: () => Promise<number>): Promise<number> {
  let changed = 0;
  for (;;) {
    const count = await changeSome();
    changed += count;
    if (count < changedMax) return changed;
  }
}
