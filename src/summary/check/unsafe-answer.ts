/** Rejects answers that are unsafe to show, whether true or not. */
import type { SummaryKind } from '../../domain/summaries.ts';

/** Domain endings recognized in any case; in lower case, every ending may form a link. */
const domainEnds =
  'com|org|net|int|eu|io|ai|dev|app|info|gov|edu|biz|xyz|online|site|space|top|me|co|uk|de|fr|ru|cn';

const domainLabels =
  '(?<![\\p{L}\\p{N}_.-])[\\p{L}\\p{N}-]{1,63}(?:\\.[\\p{L}\\p{N}-]{1,63}){0,8}\\.';

const domainStops = '(?![\\p{L}\\p{N}_])';

/** Patterns by reason, in the order of checks. */
const rules: Readonly<Record<string, readonly RegExp[]>> = {
  'it contains control characters': [/(?![\t\n\r])[\p{Cc}\p{Zl}\p{Zp}]/u],
  'it contains invisible characters or text direction marks': [
    /(?![\t\n\r])\p{C}|\p{Variation_Selector}|[\u115f\u1160\u2800\u3164\uffa0]/u,
  ],
  'it contains stacked accents': [/\p{M}{3}/u],
  'it contains emoji': [/\p{Emoji_Presentation}/u],
  'it contains a link': [
    /\/\/|\bwww\.|\b(?:javascript|vbscript|mailto|tel|file|data|blob|smb|ssh|ftp|https?):(?=\S)/i,
    new RegExp(`${domainLabels}\\p{Ll}{2,24}${domainStops}`, 'u'),
    new RegExp(`${domainLabels}(?:${domainEnds})${domainStops}`, 'iu'),
    /(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])/,
  ],
  'it contains an e-mail address or a mention': [/@/],
  'it contains markup': [
    /<[a-z/!?|]|&(?:#x?[0-9a-f]{1,8}|[a-z]{2,8});/i,
    // Headings, tables, emphasis, code, links, templates, formulas: plain prose has none of these characters.
    /[*`|[\]{}\\$#^]|~~|={2,}|-{3,}|\+{2,}/,
    /(?<![\p{L}\p{N}_])_+[\p{L}\p{N}]|__(?![\p{L}\p{N}_])/u,
    /^\s*(?:[-+=\u2022\u2013\u2014>]|[0-9]{1,2}[.)])\s/mu,
  ],
  'it begins like a formula': [/^\s*[=+\-@]/],
  'it mentions its instructions': [
    /\b(?:system|developer|initial|original|user) (?:prompt|message)s?\b|\b(?:the|this|my|your) prompt\b|\bas an? (?:\p{L}+ )?(?:ai|assistant|(?:language )?model)\b|\blanguage model\b|\binstructions\b|\bjailbr|\bdeveloper mode\b/iu,
    /\b(?:ignor|disregard|forget|bypass|overrid)\w{0,4} (?:\w+ ){0,3}(?:instruction|prompt|rule|message|direction|above|previous|prior)|\b(?:previous|prior|above|my|your|these|new|following) (?:instruction|rule|guideline)s?\b|(?:^|[\n.!?]\s*)(?:system|assistant|user|human) ?:/iu,
  ],
  'it speaks in the first person': [
    /\bI(?:'m| am| will| was| have|'ve| can| can't| cannot| do)\b|\bI['\u2019]/u,
  ],
  'it mentions secrets or commands': [
    /\b(?:passwords?|passphrases?|passwd|credentials?|api[ -]?keys?|secret keys?|private keys?|access tokens?|bearer|bitcoin|sudo|curl|wget|powershell|rm -|drop table|select \* from|click here)\b/iu,
  ],
};

/** Returns why an answer is unsafe, as a clause that never quotes it; null if it is safe. */
export function unsafeReason(text: string, kind: SummaryKind): string | null {
  if (text.trim() === '') return 'it is empty';
  if (text.length > answerCharactersMax[kind]) {
    return `it is longer than ${answerCharactersMax[kind]} characters`;
  }
  const broken = Object.entries(rules).find(([, forms]) => forms.some((form) => form.test(text)));
  return broken?.[0] ?? null;
}

/** Maximum length in UTF-16 units; two to three sentences, or up to six, need far less. */
export const answerCharactersMax: Readonly<Record<SummaryKind, number>> = {
  product: 1200,
  digest: 2400,
};
