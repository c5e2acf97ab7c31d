/** Reads the dates of filters into microseconds. */
import { parseDate } from '../domain/dates.ts';

const parts = /^(\d{4})(-\d\d-\d\d.*)$/s;
/** The last and the first year that microseconds can hold in full are 2254 and 1685. */
const [firstYear, lastYear] = [1685, 2254];

/**
 * Microseconds since 1970, UTC; a date without a zone is UTC. A date beyond what microseconds can
 * hold is the last one that they can, or the first. Null for a text that is no date.
 */
export function readFilterDate(text: string): number | null {
  const read = parseDate(text);
  if (read !== null) return read.us;
  const [, yearText = '', rest = ''] = parts.exec(text.trim()) ?? [];
  const year = Number(yearText);
  if (yearText === '' || (year >= firstYear && year <= lastYear)) return null;
  // Whether the day exists is seen in a year of the same length.
  const leap = new Date(Date.UTC(2000 + year, 1, 29)).getUTCMonth() === 1;
  if (parseDate(`${leap ? 2000 : 2001}${rest}`) === null) return null;
  return year > lastYear ? Number.MAX_SAFE_INTEGER : Number.MIN_SAFE_INTEGER;
}
