/** Tables of test cases in text, for rows that are too long for a line of code. */

/** One row a line, its cells parted by `¦`. */
export function rowsOf(table: string): string[][] {
  const lines = table.trim().split('\n');
  return lines.map((line) => line.trimStart().split(' ¦ '));
}

/** The text of a cell with the escapes of JSON. */
export function textOf(cell: string): string {
  return JSON.parse(`"${cell.replaceAll('"', '\\"')}"`);
}
