/** Tables for people: columns aligned by spaces. */

/** Lines of a table whose first column is text and whose others are right-aligned figures. */
export function alignTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    row.forEach((cell, column) => {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    });
  }
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => {
        const width = widths[column] ?? 0;
        return column === 0 ? cell.padEnd(width) : cell.padStart(width);
      })
      .join('  ')
      .trimEnd();
  return rows.map(line).join('\n');
}

/** A figure with a fixed number of decimals, or a dash when there is none. */
export function figure(value: number | null, decimals = 0): string {
  return value === null ? '-' : value.toFixed(decimals);
}

/** Bytes as MB (a million bytes), or a dash. */
export function megabytes(bytes: number | null): string {
  return figure(bytes === null ? null : bytes / 1e6);
}
