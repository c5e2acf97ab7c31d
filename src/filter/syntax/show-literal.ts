/** Writes values as the filter language has them. */

import { formatDateUs } from '../../domain/dates.ts';
import type { Literal } from '../../domain/filter-tree.ts';

/** A text in single quotes, those in it doubled. */
export function showText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** A number so that reading it gives the same one. */
export function showNumber(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

export function showLiteral(literal: Literal): string {
  switch (literal.type) {
    case 'text':
      return showText(literal.value);
    case 'number':
      return showNumber(literal.value);
    case 'boolean':
      return String(literal.value);
    case 'date':
      return formatDateUs(literal.us);
  }
}
