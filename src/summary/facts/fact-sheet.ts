/** What may be said about a subject, as labelled short texts: a model sees this and nothing else. */
import type { SummaryKind } from '../../domain/summaries.ts';

export interface Fact {
  /** In the words of people: `cloud cover`. */
  label: string;
  /** As it may be repeated word by word: `12.3 %`. */
  text: string;
}

/**
 * In the order of importance. Every text is made by this program: of values that it computed, and of texts
 * from outside only those that have a narrow, known form.
 */
export interface FactSheet {
  kind: SummaryKind;
  facts: readonly Fact[];
}
