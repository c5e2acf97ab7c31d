/** How wide a text stands on a terminal, so that marks can be put under a part of it. */

// Chinese, Japanese and Korean signs, full-width forms, and emoji that are shown as pictures (Unicode
// Standard Annex 11: wide and full-width).
const wide =
  /^(?:[\p{Script=Han}\p{Script=Hangul}\p{Emoji_Presentation}\u3000-\u303e\u3041-\u312f\u3190-\u33ff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6])/u;
/** Katakana and Hangul have narrow forms, too; two letters for a region make one flag. */
const narrow = /^[\uff61-\uffdc\u{1f1e6}-\u{1f1ff}]/u;
/** Accents that stand on the sign before, and marks that cannot be seen. */
const withoutWidth = /^[\p{Mn}\p{Me}\p{Cf}]/u;

/** In cells: 2 for a wide character, 0 for one that has no place of its own, 1 for all others. */
export function cellWidth(text: string): number {
  let width = 0;
  for (const character of text) {
    if (withoutWidth.test(character)) continue;
    width += wide.test(character) && !narrow.test(character) ? 2 : 1;
  }
  return width;
}
