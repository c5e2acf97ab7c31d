/** Text functions: safe output on a terminal, width in columns, similar names. */

/**
 * Escapes control characters, which could move the cursor or change colours, and marks that change the direction of
 * text: `\u202e`.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

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
export function editDistance(from: string, to: string): number {
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
