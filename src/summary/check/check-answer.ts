/**
 * Checks whether an answer is safe, and whether its claims are in the facts.
 *
 * Guarantees and limits: docs/decisions/0021-summary-verification.md.
 */
import type { FactSheet } from '../facts/phrases.ts';
import { type Claim, type Doubt, matchingText, type PlacedDoubt } from './claim.ts';
import {
  areKnownDates,
  datesOf,
  type IsPlaceName,
  isKnownNumber,
  type KnownFacts,
  keysOf,
  knownFacts,
} from './known-facts.ts';
import { asDoubts, nameDoubts, placeDoubts } from './name-doubts.ts';
import { readClaims } from './read-claims.ts';
import { unsafeReason } from './unsafe-answer.ts';

type AnswerCheck =
  /** Must not be shown; `reason` is a clause. */
  | { safe: false; reason: string }
  | {
      safe: true;
      /** Single line, trimmed, in Unicode form C. */
      text: string;
      verified: boolean;
      /** Empty if verified; in the order of the text. */
      doubts: Doubt[];
    };

/**
 * Checks the answer of a model against its fact sheet. `isPlaceName` decides whether words in lower case, separated
 * by single spaces, are the full name of a place. Never throws; linear in the text.
 */
export function checkAnswer(text: string, sheet: FactSheet, isPlaceName: IsPlaceName): AnswerCheck {
  const reason = unsafeReason(text, sheet.kind);
  if (reason !== null) return { safe: false, reason };
  const kept = text.trim().replaceAll(/\s+/g, ' ').normalize('NFC');
  const matching = matchingText(kept);
  const claims = readClaims(matching);
  const known = knownFacts(sheet, isPlaceName);
  const places = placeDoubts(matching, claims, known, isPlaceName);
  const placed = [
    ...claims.flatMap((claim) => statedDoubts(claim, matching, known)),
    ...tieDoubts(matching, claims, sheet),
    ...stateDoubts(matching, sheet),
    ...places,
    // A name that is also a place counts as a place.
    ...nameDoubts(matching, claims, known, places),
  ];
  const doubts = asDoubts(kept, placed);
  return { safe: true, text: kept, verified: doubts.length === 0, doubts };
}

/** Returns a doubt for a date, number or phrase that is not in the facts. */
function statedDoubts(claim: Claim, text: string, known: KnownFacts): PlacedDoubt[] {
  const { start, end } = claim;
  switch (claim.kind) {
    case 'date': {
      if (areKnownDates(claim, known.dates) || keysOf(claim).some((key) => known.numbers.has(key)))
        return [];
      return [{ kind: 'date', start, end }];
    }
    case 'number':
      return isKnownNumber(claim, text, known) ? [] : [{ kind: 'number', start, end }];
    case 'phrase':
      return known.phrases.has(claim.key) ? [] : [{ kind: claim.states, start, end }];
    default:
      return [];
  }
}

/** Words allowed between a name and its value: none that could introduce another fact. */
const between =
  '(?: (?:was|were|is|are|has been|have been|followed|came|took place|happened|occurred|date|time|start|' +
  'in the catalogue|from the catalogue|to the catalogue|online|first|then|only|again)){0,3}';

const onOrAt = `${between}(?: on| at|:) (?:the |about )?$`;
const orbit = '(?: number)?(?: is| was| of|:)? $';

const ties: readonly Tie[] = [
  dateTie('published|publication|released|available', /^publication$/, /published on (.*)$/),
  dateTie(
    'sensed|sensing|acquired|acquisition|captured|taken|imaged|observed|recorded',
    /^(?:sensing start|time of sensing)/,
  ),
  dateTie('received|receipt', /^(?:receipt|time of receipt)/),
  dateTie('deleted|deletion|removed|withdrawn', /^deletion date$/),
  numberTie('relative orbit', /^relative orbit number$/),
  numberTie('absolute orbit', /^absolute orbit number$/),
  numberTie('orbit', /orbit number$/),
];

interface Tie {
  kind: 'date' | 'number';
  /** Matches the text right before the value. */
  said: RegExp;
  /** Labels of the facts with the value. */
  labels: RegExp;
  /** Captures the value in the text of other facts. */
  within?: RegExp | undefined;
}

function dateTie(said: string, labels: RegExp, within?: RegExp): Tie {
  return { kind: 'date', said: new RegExp(`\\b(?:${said})${onOrAt}`, 'i'), labels, within };
}

function numberTie(said: string, labels: RegExp): Tie {
  return { kind: 'number', said: new RegExp(`\\b${said}${orbit}`, 'i'), labels };
}

const reach = 100;

/** Returns doubts for values that the facts have under another name than the text. */
function tieDoubts(text: string, claims: readonly Claim[], sheet: FactSheet): PlacedDoubt[] {
  return claims.flatMap((claim): PlacedDoubt[] => {
    if (claim.kind !== 'date' && claim.kind !== 'number') return [];
    const { start, end } = claim;
    const before = text.slice(Math.max(0, start - reach), start);
    const isWrong = ties.some((tie) => tie.said.test(before) && !isFact(claim, tie, sheet));
    return isWrong ? [{ kind: claim.kind, start, end }] : [];
  });
}

/** Returns true if the facts have the value under this name, or have nothing under this name. */
function isFact(claim: Claim, { labels, kind, within }: Tie, sheet: FactSheet): boolean {
  const texts = sheet.facts.flatMap(({ label, text }) => {
    if (labels.test(label)) return [text];
    const part = within?.exec(text)?.[1];
    return part === undefined ? [] : [part];
  });
  const known = texts.map((one) => readClaims(matchingText(one)));
  if (kind === 'number') {
    if (claim.kind !== 'number') return true;
    const keys = known.flat().flatMap(keysOf);
    return claim.keys.some((key) => keys.includes(key));
  }
  const dates = known.flatMap(datesOf);
  if (claim.kind !== 'date' || dates.length === 0) return true;
  return areKnownDates(claim, dates);
}

const gone = /state in the catalogue: deleted/;
const offline = /: offline: /;

function words(pattern: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${pattern})(?![\\p{L}\\p{N}_])`, 'giu');
}

const was = '(?:is|are|was|were|be|been|being|gets?|got) (?:\\p{Ll}+ly |since |later |then |now )?';

/** `said` matches synonyms; the facts, each as `label: text`, must match `needs` and must not match `bars`. */
const groups: readonly { said: RegExp; needs?: RegExp; bars?: RegExp }[] = [
  {
    said: words(
      'deleted|deletions?|removed|removals?|withdrawn|withdrawals?|withdrew|purged|erased|' +
        'no longer (?:available|there|exists?|listed|in the catalogue)',
    ),
    needs: /\bdelet(?:ed|ions?)\b/,
  },
  { said: words('corrupt(?:ed|ion|s)?|damaged'), needs: /\bcorrupted\b/ },
  { said: words('duplicat(?:es?|ed|ion)|redundant'), needs: /\bduplicate/ },
  { said: words('checksums?'), needs: /\bchecksum\b/ },
  { said: words('obsolete|outdated'), needs: /\bobsolete\b|replaced by/ },
  { said: words(`${was}(?:replaced|superseded)|(?:replaced|superseded) by`), needs: /replaced by/ },
  { said: words('replac(?:es?|ed|ing|ements?)|supersed(?:es?|ed|ing)'), needs: /\breplace[sd]\b/ },
  { said: words('re-?process(?:ed|ing|ings)'), needs: /\breprocess|\breplace[sd]\b/ },
  { said: words('modified|modifications?|altered|amended'), needs: /\bmodified\b/ },
  {
    said: words(`${was}off-?line(?! processing)|taken off-?line|kept off-?line`),
    needs: offline,
  },
  { said: words('off-?line'), needs: /\boffline\b/ },
  {
    said: words('archived|on tape|(?:not|must be|to be|has to be) (?:online|ordered)'),
    needs: offline,
  },
  {
    said: words('unavailable|not (?:yet |currently |now |immediately )?(?:available|downloadable)'),
    needs: /offline|deleted|none in the record|without a footprint|not known/,
  },
  { said: words('(?<!not )(?<!not \\p{Ll}{3,12} )online|downloadable'), needs: /: online\b/ },
  {
    said: words(
      '(?:is|are|remains?|now|currently|readily|immediately|still) available|' +
        '(?:available|ready) for download',
    ),
    bars: new RegExp(`${gone.source}|${offline.source}`),
  },
  // No fact states these.
  {
    said: words(
      'embargoed|confidential|quarantined|restricted|recalled|suspended|cancell?ed|rejected|' +
        'unusable|truncated|degraded|incomplete|faulty|defective',
    ),
    needs: /(?!)/,
  },
];

/** Measures that the facts never have; cloud cover is their only percentage. */
const measured =
  'snow|ice|rain|fog|haze|water|land|sea|forest|vegetation|shadow|humidity|moisture|urban|' +
  'probability|confidence|accuracy|quality|completeness|success';

const beforePercent = new RegExp(
  `(?<![\\p{L}-])(?:${measured})(?: cover(?:age)?| fraction| share| rate| level| score)?,? ` +
    '(?:(?:is|was|of|at|reach(?:es|ed)|stands at|amounts to) )?(?:about )?' +
    '(?=[0-9][0-9.,]* ?(?:%|per ?cent))',
  'giu',
);

const afterPercent = words(
  '(?<=[0-9] ?(?:%|per ?cent) (?:of (?:it|them|(?:the|its|this) \\p{Ll}+) )?' +
    '(?:(?:is|are|was|were) )?)' +
    `(?:clear|cloudless|cloud-free|free|sunny|${measured}|valid|complete|usable)`,
);

/** Returns doubts for states and measures that the facts do not support. */
function stateDoubts(text: string, sheet: FactSheet): PlacedDoubt[] {
  const lines = sheet.facts.map((fact) => `${fact.label}: ${fact.text}`).join('\n');
  const unfounded = groups.filter(({ needs, bars }) => {
    return (needs !== undefined && !needs.test(lines)) || bars?.test(lines) === true;
  });
  return [...unfounded.map(({ said }) => said), beforePercent, afterPercent].flatMap((said) =>
    [...text.matchAll(said)].map((match): PlacedDoubt => {
      return { kind: 'state', start: match.index, end: match.index + match[0].trimEnd().length };
    }),
  );
}
