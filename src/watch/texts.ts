/** Formats of times, numbers and foreign text in alerts and in the status. */
import { shortDateUs, wholeDays } from '../domain/dates.ts';
import { dayUs, hourUs, minuteUs } from '../domain/time-units.ts';

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

/** Formats a duration, with whole days: `40 s`, `40 min`, `9.5 h` or `12 days`. */
export function lengthText(us: number): string {
  if (us < minuteUs) return `${Math.max(0, Math.floor(us / 1_000_000))} s`;
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

/** Formats a count: `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** Rounds a number for people: `0.4`, `12`, `1300`. */
function rounded(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}
