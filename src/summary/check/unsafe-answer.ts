/** What makes an answer unfit to be shown anywhere, whether it is true or not. */
import type { SummaryKind } from '../../domain/summaries.ts';

interface Rule {
  reason: string;
  pattern: RegExp;
}

/** Ends of addresses that are links in whatever case; in small letters every end may be one. */
const domainEnds =
  'com|org|net|int|eu|io|ai|dev|app|info|gov|edu|biz|xyz|online|site|space|top|me|co|uk|de|fr|ru|cn';

const domainLabels =
  '(?<![\\p{L}\\p{N}_.-])[\\p{L}\\p{N}-]{1,63}(?:\\.[\\p{L}\\p{N}-]{1,63}){0,8}\\.';

const domainStops = '(?![\\p{L}\\p{N}_])';

const rules: readonly Rule[] = [
  {
    reason: 'it has control characters',
    pattern: /(?![\t\n\r])[\p{Cc}\p{Zl}\p{Zp}]/u,
  },
  {
    reason: 'it has invisible characters or marks that turn the direction of text',
    pattern: /(?![\t\n\r])\p{C}|\p{Variation_Selector}|[\u115f\u1160\u2800\u3164\uffa0]/u,
  },
  { reason: 'it piles up accents', pattern: /\p{M}{3}/u },
  { reason: 'it has picture characters', pattern: /\p{Emoji_Presentation}/u },
  {
    reason: 'it has a link',
    pattern:
      /\/\/|\bwww\.|\b(?:javascript|vbscript|mailto|tel|file|data|blob|smb|ssh|ftp|https?):(?=\S)/i,
  },
  {
    reason: 'it has a link',
    pattern: new RegExp(`${domainLabels}\\p{Ll}{2,24}${domainStops}`, 'u'),
  },
  {
    reason: 'it has a link',
    pattern: new RegExp(`${domainLabels}(?:${domainEnds})${domainStops}`, 'iu'),
  },
  { reason: 'it has a link', pattern: /(?<![0-9.])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![0-9.])/ },
  { reason: 'it has an e-mail address or a mention', pattern: /@/ },
  { reason: 'it has markup', pattern: /<[a-z/!?|]|&(?:#x?[0-9a-f]{1,8}|[a-z]{2,8});/i },
  // Headings, tables, emphasis, code, links, templates, formulas: none of these signs is in plain prose.
  { reason: 'it has markup', pattern: /[*`|[\]{}\\$#^]|~~|={2,}|-{3,}|\+{2,}/ },
  { reason: 'it has markup', pattern: /(?<![\p{L}\p{N}_])_+[\p{L}\p{N}]|__(?![\p{L}\p{N}_])/u },
  { reason: 'it has markup', pattern: /^\s*(?:[-+=\u2022\u2013\u2014>]|[0-9]{1,2}[.)])\s/mu },
  { reason: 'it begins as a formula', pattern: /^\s*[=+\-@]/ },
  {
    reason: 'it talks about its instructions',
    pattern:
      /\b(?:system|developer|initial|original|user) (?:prompt|message)s?\b|\b(?:the|this|my|your) prompt\b|\bas an? (?:\p{L}+ )?(?:ai|assistant|(?:language )?model)\b|\blanguage model\b|\binstructions\b|\bjailbr|\bdeveloper mode\b/iu,
  },
  {
    reason: 'it talks about its instructions',
    pattern:
      /\b(?:ignor|disregard|forget|bypass|overrid)\w{0,4} (?:\w+ ){0,3}(?:instruction|prompt|rule|message|direction|above|previous|prior)|\b(?:previous|prior|above|my|your|these|new|following) (?:instruction|rule|guideline)s?\b|(?:^|[\n.!?]\s*)(?:system|assistant|user|human) ?:/iu,
  },
  {
    reason: 'it talks about itself',
    pattern: /\bI(?:'m| am| will| was| have|'ve| can| can't| cannot| do)\b|\bI['\u2019]/u,
  },
  {
    reason: 'it talks of secrets or commands',
    pattern:
      /\b(?:passwords?|passphrases?|passwd|credentials?|api[ -]?keys?|secret keys?|private keys?|access tokens?|bearer|bitcoin|sudo|curl|wget|powershell|rm -|drop table|select \* from|click here)\b/iu,
  },
];

/** Why an answer cannot be kept, in words that end a sentence; null when it can. Never quotes it. */
export function unsafeReason(text: string, kind: SummaryKind): string | null {
  if (text.trim() === '') return 'it is empty';
  if (text.length > answerCharactersMax[kind]) {
    return `it is longer than ${answerCharactersMax[kind]} characters`;
  }
  return rules.find(({ pattern }) => pattern.test(text))?.reason ?? null;
}

/** Characters, as JavaScript counts them. Two to three sentences, and up to six, need far less. */
export const answerCharactersMax: Readonly<Record<SummaryKind, number>> = {
  product: 1200,
  digest: 2400,
};
