/** Words that others wrote, as alerts quote them: a chat makes no link and no markup of them. */

/** Marks of markup, and what looks like them and means nothing. */
const harmless: ReadonlyMap<string, string> = new Map([
  ['[', '('],
  [']', ')'],
  ['`', "'"],
  ['*', '∗'],
  ['_', '‗'],
  ['~', '∼'],
  ['|', '∣'],
]);

/** Within a word, `_` marks nothing, and stands in many names. */
const marks = /[[\]`*~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** For answers of services, errors of programs and the like. Control characters are left as they are. */
export function quoted(words: string): string {
  return words.replaceAll(marks, (mark) => harmless.get(mark) ?? '').replaceAll('://', ' : //');
}
