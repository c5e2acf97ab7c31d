/** Makes text from outside safe to show on a terminal. */

/**
 * Replaces control characters, which could move the cursor or recolour the screen, and marks that
 * turn the direction of text around.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]/gu,
    '\ufffd',
  );
}

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

/** Such as `4.2 GiB`, `63 MiB` or `0 KiB`: rounded down, so that nothing free is promised that is not. */
export function sizeText(bytes: number): string {
  const [unit, size] = units.find((one) => bytes >= one[1]) ?? units[2];
  const amount = bytes / size;
  return `${amount < 10 ? Math.floor(amount * 10) / 10 : Math.floor(amount)} ${unit}`;
}

/** What the text says; undefined, which JSON cannot say, when it is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Number of characters to insert, delete or replace, or of neighbours to exchange, that turns one text into the other,
 * where no part is edited twice (optimal string alignment).
 */
export function editDistance(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let line = 0; line < from.length; line += 1) {
    const next = [line + 1];
    for (let column = 0; column < to.length; column += 1) {
      const replaced = (row[column] ?? 0) + Number(from[line] !== to[column]);
      let least = Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1);
      if (from[line] === to[column - 1] && from[line - 1] === to[column]) {
        least = Math.min(least, (before[column - 1] ?? least) + 1);
      }
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
