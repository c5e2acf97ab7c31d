/** What is said right after the name of a fact must be that fact: `published at 10:15`, `relative orbit 65`. */
import type { FactSheet } from '../facts/fact-sheet.ts';
import type { Claim } from './claim.ts';
import type { PlacedDoubt } from './doubt.ts';
import { datesOf, isKnownDate } from './known-dates.ts';
import { matchingText } from './matching-text.ts';
import { readClaims } from './read-claims.ts';

interface Tie {
  /** What stands right before the value. */
  said: RegExp;
  /** The labels of the facts that have it. */
  labels: RegExp;
  kind: 'date' | 'number';
  /** Behind this word other facts have it, too. */
  within?: RegExp;
}

/** Words that may stand between: nothing that another fact could be told with. */
const between =
  '(?: (?:was|were|is|are|has been|have been|followed|came|took place|happened|occurred|date|time|start|' +
  'in the catalogue|from the catalogue|to the catalogue|online|first|then|only|again)){0,3}';
const onOrAt = `${between}(?: on| at|:) (?:the |about )?$`;
const orbit = '(?: number)?(?: is| was| of|:)? $';

const ties: readonly Tie[] = [
  {
    said: new RegExp(`\\b(?:published|publication|released|available)${onOrAt}`, 'i'),
    labels: /^publication$/,
    kind: 'date',
    within: /published on (.*)$/,
  },
  {
    said: new RegExp(
      `\\b(?:sensed|sensing|acquired|acquisition|captured|taken|imaged|observed|recorded)${onOrAt}`,
      'i',
    ),
    labels: /^(?:sensing start|time of sensing)/,
    kind: 'date',
  },
  {
    said: new RegExp(`\\b(?:received|receipt)${onOrAt}`, 'i'),
    labels: /^(?:receipt|time of receipt)/,
    kind: 'date',
  },
  {
    said: new RegExp(`\\b(?:deleted|deletion|removed|withdrawn)${onOrAt}`, 'i'),
    labels: /^deletion date$/,
    kind: 'date',
  },
  {
    said: new RegExp(`\\brelative orbit${orbit}`, 'i'),
    labels: /^relative orbit number$/,
    kind: 'number',
  },
  {
    said: new RegExp(`\\babsolute orbit${orbit}`, 'i'),
    labels: /^absolute orbit number$/,
    kind: 'number',
  },
  { said: new RegExp(`\\borbit${orbit}`, 'i'), labels: /orbit number$/, kind: 'number' },
];

const reach = 100;

/** Values that the facts have, but not under the name that the text gives them. */
export function tieDoubts(text: string, claims: readonly Claim[], sheet: FactSheet): PlacedDoubt[] {
  return claims.flatMap((claim): PlacedDoubt[] => {
    if (claim.kind !== 'date' && claim.kind !== 'number') return [];
    const { start, end } = claim;
    const before = text.slice(Math.max(0, start - reach), start);
    const isWrong = ties.some((tie) => tie.said.test(before) && !isFact(claim, tie, sheet));
    return isWrong ? [{ kind: claim.kind, start, end }] : [];
  });
}

/** True as well where the facts have nothing of that name to compare with. */
function isFact(claim: Claim, { labels, kind, within }: Tie, sheet: FactSheet): boolean {
  const texts = sheet.facts.flatMap(({ label, text }) => {
    if (labels.test(label)) return [text];
    const part = within?.exec(text)?.[1];
    return part === undefined ? [] : [part];
  });
  const known = texts.map((one) => readClaims(matchingText(one)));
  if (kind === 'number') {
    if (claim.kind !== 'number') return true;
    const keys = known.flat().flatMap((one) => keysOf(one));
    return claim.keys.some((key) => keys.includes(key));
  }
  const dates = known.flatMap(datesOf);
  if (claim.kind !== 'date' || dates.length === 0) return true;
  return claim.dates.every((readings) => readings.some((one) => isKnownDate(one, dates)));
}

function keysOf(claim: Claim): readonly string[] {
  if (claim.kind === 'number') return claim.keys;
  return claim.kind === 'date' && claim.orNumber !== undefined ? [claim.orNumber] : [];
}
