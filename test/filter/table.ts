/** Tables of test cases as text, for rows that are too long for a line of code. */

/** Rows of a table, one per line; `¦` separates the cells. */
export function rowsOf(table: string): string[][] {
  const lines = table.trim().split('\n');
  return lines.map((line) => line.trimStart().split(' ¦ '));
}

/** Returns the text of a cell with JSON escapes replaced. */
export function textOf(cell: string): string {
  return JSON.parse(`"${cell.replaceAll('"', '\\"')}"`);
}
