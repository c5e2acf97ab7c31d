/**
 * Whether an answer may be kept, and whether what it states was found in the facts.
 *
 * What this proves and what it cannot: docs/decisions/0021-what-a-text-may-say.md.
 */
import type { FactSheet } from '../facts/fact-sheet.ts';
import type { Claim } from './claim.ts';
import type { Doubt, PlacedDoubt } from './doubt.ts';
import { isKnownDate } from './known-dates.ts';
import { type IsPlaceName, isKnownNumber, type KnownFacts, knownFacts } from './known-facts.ts';
import { matchingText } from './matching-text.ts';
import { asDoubts, nameDoubts, placeDoubts } from './name-doubts.ts';
import { readClaims } from './read-claims.ts';
import { stateDoubts } from './state-words.ts';
import { tieDoubts } from './tied-facts.ts';
import { unsafeReason } from './unsafe-answer.ts';

export type AnswerCheck =
  /** Not to be shown to anyone; `reason` says why in words that end a sentence. */
  | { safe: false; reason: string }
  | {
      safe: true;
      /** In one line, without blanks around it, in Unicode's form C. */
      text: string;
      verified: boolean;
      /** Empty when verified; in the order of the text. */
      doubts: Doubt[];
    };

/**
 * Judges the answer of a model by the sheet that it was given. `isPlaceName` tells whether words in small
 * letters, parted by one blank, are the whole name of a place. Never throws; the time it takes grows with the
 * text alone.
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
    // What is both is told as a place.
    ...nameDoubts(matching, claims, known, places),
  ];
  const doubts = asDoubts(kept, placed);
  return { safe: true, text: kept, verified: doubts.length === 0, doubts };
}

/** A date, a number or a telling phrase that the facts do not have. */
function statedDoubts(claim: Claim, text: string, known: KnownFacts): PlacedDoubt[] {
  const { start, end } = claim;
  switch (claim.kind) {
    case 'date': {
      const found = claim.dates.every((readings) =>
        readings.some((reading) => isKnownDate(reading, known.dates)),
      );
      if (found || (claim.orNumber !== undefined && known.numbers.has(claim.orNumber))) return [];
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
