/** What an answer states and the facts do not. */
import type { Span } from './claim.ts';

export const doubtKinds = ['number', 'date', 'name', 'place', 'state', 'script'] as const;
export type DoubtKind = (typeof doubtKinds)[number];

export interface Doubt {
  kind: DoubtKind;
  /** As in the answer, at most 60 characters. */
  words: string;
}

export type PlacedDoubt = Span & Pick<Doubt, 'kind'>;

const wordsMax = 60;

/** A doubt about a part of a text. */
export function doubtOf(kind: DoubtKind, text: string): Doubt {
  return { kind, words: text.slice(0, wordsMax).toWellFormed() };
}
