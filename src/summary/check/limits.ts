/** Words that make a limit of the number behind them: `less than`, `more than`. */
import type { NumberClaim } from './claim.ts';

/** `exact` also stands for numbers with words that set no limit, or a limit that the number itself keeps. */
export type Limit = 'less' | 'more' | 'exact';

const less = /(?:\b(?:less|fewer|lower|smaller|shorter) than|\bunder|\bbelow)(?: an?)? $/i;
const more =
  /(?:\b(?:more|greater|larger|longer|higher) than|\babove|\bexceed(?:s|ed|ing)?|\bin excess of|\bat least|\b(?:no|not) less than|\bupwards of)(?: an?)? $/i;
const atMost = /\b(?:no|not) more than $/i;
/** `spread over 12 km²`, `recorded over 30 s`: no limit. */
const over = /(\p{L}*) ?\bover(?: an?)? $/iu;
const extending =
  /^(?:spread|extend|stretch|distribut|scatter|record|acquir|observ|collect|last|sens|taken)/i;
const within = /\bwithin $/i;

const reach = 40;

/** What the words before a number may make of it. */
export function limitsOf({ start, measure }: NumberClaim, text: string): readonly Limit[] {
  const before = text.slice(Math.max(0, start - reach), start);
  if (atMost.test(before)) return ['exact', 'less'];
  if (less.test(before)) return ['less'];
  if (more.test(before)) return ['more'];
  if (within.test(before)) return ['exact', 'less'];
  const spread = over.exec(before);
  if (spread === null) return ['exact'];
  const isTime = measure === 'seconds' || measure === 'months';
  return isTime || extending.test(spread[1] ?? '') ? ['more', 'exact'] : ['more'];
}
