/** Formats of times, counts, sizes and foreign text: terminal and page write them in the same way. */
import { shortDateUs, wholeDays } from './dates.ts';
import { dayUs, hourUs, minuteUs } from './time-units.ts';

/** Markup characters, and similar characters without a function in the same order. */
const [markup, harmless] = ['[]`*_~|', "()'∗‗∼∣"];

/** Within a word, `_` has no function and is common in names. */
const marks = /[[\]`*~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** Removes markup from text of services and programs. Control characters stay. */
export function quoted(text: string): string {
  const plain = text.replaceAll(marks, (mark) => harmless.charAt(markup.indexOf(mark)));
  return plain.replaceAll('://', ' : //');
}

/** Formats a time: `2026-05-01 14:20 UTC`. */
export function momentText(us: number): string {
  return `${shortDateUs(us)} UTC`;
}

/** Formats a duration, with whole days: `0.4 s`, `40 min`, `9.5 h` or `12 days`. */
export function lengthText(us: number): string {
  if (us < minuteUs) return `${rounded(Math.max(0, us / 1_000_000))} s`;
  if (us < 2 * hourUs) return `${Math.round(us / minuteUs)} min`;
  if (us < 2 * dayUs) return `${rounded(us / hourUs)} h`;
  return `${wholeDays(us)} days`;
}

/** Formats an age: `just now` or `40 min ago`. */
export function agoText(us: number): string {
  return us < minuteUs ? 'just now' : `${lengthText(us)} ago`;
}

/** Formats a share: `5 %` or `0.1 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent < 1 ? Number(percent.toPrecision(1)) : rounded(percent)} %`;
}

const grouped = new Intl.NumberFormat('en-US');

/** Formats a count: `1,234`. */
export function countText(count: number): string {
  return grouped.format(count);
}

/** `1 dead letter`, `1,288 dead letters`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** Joins the first three items, and counts the others: `a, b, c and 4 more`. */
export function listed(items: readonly string[]): string {
  const shown = items.slice(0, 3).join(', ');
  return items.length > 3 ? `${shown} and ${items.length - 3} more` : shown;
}

/** Rounds a number for people: `0.4`, `12`, `1300`. */
function rounded(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}

const units = [
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
] as const;

/** Formats a size, rounded down so that free space is never overstated: `4.2 GiB`, `63 MiB` or `0 KiB`. */
export function sizeText(bytes: number): string {
  const [unit, size] = units.find((one) => bytes >= one[1]) ?? units[2];
  const amount = bytes / size;
  return `${amount < 10 ? Math.floor(amount * 10) / 10 : Math.floor(amount)} ${unit}`;
}

const decimalUnits = ['B', 'kB', 'MB', 'GB', 'TB'];

/** Formats a size in decimal units, as the catalogue's pages do: `1.7 GB` is 1.7e9 bytes. Null for no size. */
export function byteText(bytes: number | null): string | null {
  if (bytes === null) return null;
  const step = Math.min(Math.floor(Math.log10(Math.max(bytes, 1)) / 3), decimalUnits.length - 1);
  const value = bytes / 1000 ** step;
  return `${value.toFixed(step === 0 || value >= 100 ? 0 : 1)} ${decimalUnits[step]}`;
}
