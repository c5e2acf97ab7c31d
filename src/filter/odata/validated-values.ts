/** Reads the whole numbers and truth values of a query, with the catalogue's own words when it cannot. */
import type { ValidationItem } from './refusal.ts';

/** Reads `$top` and `$skip`; notes what is wrong in `items` and goes on with the default. */
export function readWhole(
  text: string | undefined,
  { name, fallback, max, items }: { name: string; fallback: number; max: number } & Noted,
): number {
  if (text === undefined) return fallback;
  const note = (type: string, msg: string, ctx = {}) => {
    items.push({ type, loc: ['query', name], msg, input: text, ...ctx });
    return fallback;
  };
  if (!/^\s*[+-]?\d+\s*$/.test(text)) {
    return note(
      'int_parsing',
      'Input should be a valid integer, unable to parse string as an integer',
    );
  }
  const value = Number(text);
  const ctx = { ctx: { error: {} } };
  if (value > max) {
    return note('less_than_equal', `Input should be less than or equal to ${max}`, ctx);
  }
  return value < 0
    ? note('greater_than_equal', 'Input should be greater than or equal to 0', ctx)
    : value;
}

/** Reads `$count`: True, true, 1, False, false, 0, as the vendor documents. */
export function readTruth(
  text: string | undefined,
  { name, items }: { name: string } & Noted,
): boolean {
  if (text === undefined || /^(false|0)$/i.test(text)) return false;
  if (/^(true|1)$/i.test(text)) return true;
  items.push({
    type: 'bool_parsing',
    loc: ['query', name],
    msg: 'Input should be a valid boolean, unable to interpret input',
    input: text,
  });
  return false;
}

interface Noted {
  items: ValidationItem[];
}
