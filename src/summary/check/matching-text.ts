/** Spellings that mean the same are made equal, so that a text can be compared with the facts. */

/**
 * The text with one form of hyphen, dash and apostrophe. As long as before, place by place: some models
 * write `Sentinel‑2` with a hyphen that does not break.
 */
export function matchingText(text: string): string {
  return text
    .replaceAll(/[\u2010\u2011\u2212]/g, '-')
    .replaceAll(/[\u2012-\u2015]/g, '\u2013')
    .replaceAll(/[\u2018\u2019\u02bc]/g, "'");
}

/** A name without its case, its accents and its article: `São Paulo` and `the Netherlands` are `sao paulo` and `netherlands`. */
export function foldedName(name: string): string {
  const folded = name.normalize('NFD').replaceAll(/\p{M}/gu, '').toLowerCase();
  return folded.replace(/^the /, '');
}

/**
 * A word by which it is found among the words of the facts. Short forms of missions and levels stand for
 * the long ones: `S2B` and `Sentinel 2B` are `sentinel-2b`, `L2A` is `level-2a`.
 */
export function wordKey(word: string): string {
  const key = foldedName(word);
  const short = /^([sl])([0-9][a-dp]?)$/.exec(key);
  if (short !== null) return `${short[1] === 's' ? 'sentinel' : 'level'}-${short[2]}`;
  return key.replace(/^(sentinel|landsat|level) (?=[0-9])/, '$1-');
}
