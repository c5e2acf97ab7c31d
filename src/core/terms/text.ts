/** Text functions: safe output on a terminal, width in columns, similar names. */
import { dayUs, hourUs, minuteUs, shortDateUs, wholeDays } from './dates.ts';

export { printable } from '../page/browser/texts.ts';

/** Replaces user name and password of a URL, also of one that cannot be parsed: all before the last `@`. */
export function hidePassword(text: string): string {
  return text.replace(/(:\/*|\/\/).*@/s, '$1(hidden)@');
}

/** Parses JSON; returns undefined, which is not a JSON value, for invalid text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the number of characters to insert, delete, replace or swap with a neighbour to turn one text into the
 * other, editing no part twice (optimal string alignment).
 */
function editDistance(from: string, to: string): number {
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

// Chinese, Japanese and Korean characters, full-width forms, and emoji shown as pictures (Unicode
// Standard Annex 11: wide and full-width).
const wide =
  /^(?:[\p{Script=Han}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\u3041-\u312f\u3190-\u33ff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6])/u;
/** Katakana and Hangul also have narrow forms; two regional indicators form one flag. */
const narrow = /^[\uff61-\uffdc\u{1f1e6}-\u{1f1ff}]/u;
/** Combining accents and invisible characters. */
const withoutWidth = /^[\p{Mn}\p{Me}\p{Cf}]/u;

/** Returns the width in terminal cells: 2 for a wide character, 0 for a combining one, otherwise 1. */
export function cellWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (withoutWidth.test(character)) continue;
    width += wide.test(character) && !narrow.test(character) ? 2 : 1;
  }
  return width;
}

/** Maximum length of a mistyped name; comparing longer ones would only cost time. */
const lengthMax = 60;

/**
 * Returns the known names that start with a word; otherwise the nearest one; otherwise those that contain it. Empty
 * when none is similar.
 */
export function likelyNames(word: string, known: readonly string[]): string[] {
  const lower = word.toLowerCase();
  const begun = word === '' ? [] : known.filter((name) => name.toLowerCase().startsWith(lower));
  if (begun.length > 0) return begun;
  const nearest = nearestName(word, known);
  if (nearest !== null) return [nearest];
  // Names contain shorter parts by chance.
  return word.length < 4 ? [] : known.filter((name) => name.toLowerCase().includes(lower));
}

/** Returns the nearest known name, ignoring case; null when none is similar enough. */
export function nearestName(name: string, known: readonly string[]): string | null {
  if (name.length > lengthMax) return null;
  const lower = name.toLowerCase();
  let best: string | null = null;
  let bestDistance = Math.min(name.length, Math.floor(Math.max(3, name.length / 4 + 1)));
  for (const candidate of known) {
    if (Math.abs(candidate.length - name.length) >= bestDistance) continue;
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance >= bestDistance) continue;
    best = candidate;
    bestDistance = distance;
  }
  return best;
}

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

/** Formats a count: `1,234`. */
export function countText(count: number): string {
  // Not with Intl, which takes 10 ms and 3 MB at its first use.
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
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

const joinedBy = (word: 'and' | 'or') => (items: readonly string[]) =>
  [items.slice(0, -1).join(', '), ...items.slice(-1)].filter(Boolean).join(` ${word} `);

/** Joins alternatives: `on or off`; `a, b or c`. */
export const orList = joinedBy('or');

/** `a`, `a and b`, `a, b and c`. */
export const andList = joinedBy('and');

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
