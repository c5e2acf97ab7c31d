/** Distance between a name and a known one, for suggestions. */

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
