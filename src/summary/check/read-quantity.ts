/** Reads numbers in digits, with their units: `12,056 km²`, `4 h 37 min`, `-3.5 °C`, `1.2 million`. */
import type { NumberClaim } from './claim.ts';
import { numberKey, readUnit } from './measures.ts';

/** Thousands by comma or blank, then decimals; else decimals by point or comma. */
const numeral =
  /([0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]{1,3}(?: [0-9]{3})+(?:[.,][0-9]+)?|[0-9]+,[0-9]{1,2}(?![0-9,])|[0-9]+(?:\.[0-9]+)?)(?![0-9])/y;
const version = /[0-9]+(?:\.[0-9]+){2,}(?![\p{L}\p{N}_])/uy;
const ordinal = /(?:st|nd|rd|th)(?![\p{L}\p{N}_])/iuy;
const scale = /[ -](hundred|thousand|million|billion|dozen)(?![\p{L}\p{N}_])/iuy;
const ends = /(?![\p{L}\p{N}_])/uy;
const andThen = /(?:,? and |, | )?(?=[0-9])/y;

const scales: Readonly<Record<string, number>> = {
  hundred: 100,
  thousand: 1e3,
  million: 1e6,
  billion: 1e9,
  dozen: 12,
};

function exec(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/** The number that begins here; null where what begins here is none, as in `2A` or `32TQM`. */
export function readQuantity(text: string, start: number): NumberClaim | null {
  const versioned = exec(version, text, start);
  if (versioned !== null) {
    const end = start + versioned[0].length;
    return {
      kind: 'number',
      start,
      end,
      value: Number.NaN,
      measure: 'none',
      factor: 1,
      keys: [versioned[0]],
    };
  }
  const match = exec(numeral, text, start);
  if (match === null) return null;
  let end = start + match[0].length;
  let value = valueIn(match[0]) * (isNegative(text, start) ? -1 : 1);
  const scaled = exec(scale, text, end);
  if (scaled !== null) {
    value *= scales[(scaled[1] ?? '').toLowerCase()] ?? 1;
    end += scaled[0].length;
  }
  return withUnit(text, { start, end, value });
}

/** Completes a number with the unit that follows it; null when letters follow that are no unit. */
export function withUnit(
  text: string,
  { start, end, value }: { start: number; end: number; value: number },
): NumberClaim | null {
  const read = readUnit(text, end);
  if (read === null) {
    const after = end + (exec(ordinal, text, end)?.[0].length ?? 0);
    if (exec(ends, text, after) === null) return null;
    const measure = /[€£¥]/.test(text.charAt(start - 1)) ? 'money' : 'none';
    return numberClaim({ start, end: after, value, measure, factor: 1 });
  }
  const { measure, factor } = read.unit;
  const total = { start, end: read.end, value: value * factor, measure, factor };
  const claim = measure === 'seconds' ? addSmaller(text, total, factor) : total;
  return exec(ends, text, claim.end) === null && measure === 'seconds' ? null : numberClaim(claim);
}

export function numberClaim(of: Omit<NumberClaim, 'kind' | 'keys'>): NumberClaim {
  return { kind: 'number', ...of, keys: [numberKey(of.value, of.measure)] };
}

/** The next smaller unit of a time, in seconds. */
const smaller: Readonly<Record<number, number>> = { 604800: 86_400, 86400: 3600, 3600: 60, 60: 1 };

/** `4 h 37 min` is one number. After hours, `m` is minutes. */
function addSmaller<Total extends { end: number; value: number }>(
  text: string,
  total: Total,
  factor: number,
): Total {
  const joint = exec(andThen, text, total.end);
  const at = total.end + (joint?.[0].length ?? 0);
  const match = joint === null ? null : exec(numeral, text, at);
  if (match === null) return total;
  const end = at + match[0].length;
  const minutes = factor === 3600 ? /[ ]?m(?![\p{L}_])/uy : null;
  const short = minutes === null ? null : exec(minutes, text, end);
  const read =
    short === null
      ? readUnit(text, end)
      : { unit: { measure: 'seconds', factor: 60 }, end: end + short[0].length };
  if (read?.unit.measure !== 'seconds' || read.unit.factor !== smaller[factor]) return total;
  const value = total.value + valueIn(match[0]) * read.unit.factor;
  return addSmaller(text, { ...total, end: read.end, value }, read.unit.factor);
}

function valueIn(digits: string): number {
  if (/^[0-9]{1,3}(?:[, ][0-9]{3})+/.test(digits)) {
    const [, whole = '', rest = ''] = /^([0-9]{1,3}(?:[, ][0-9]{3})+)(.*)$/.exec(digits) ?? [];
    return Number(whole.replaceAll(/[, ]/g, '') + rest.replace(',', '.'));
  }
  return Number(digits.replace(',', '.'));
}

/** A hyphen before it is a minus unless it joins: `10-20`, `L-2`. */
function isNegative(text: string, start: number): boolean {
  return text.charAt(start - 1) === '-' && /^[\s(]?$/.test(text.charAt(start - 2));
}
