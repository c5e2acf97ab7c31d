/** How long an answer may be: what is longer was not asked for, and is not kept. */
import type { SummaryKind } from '../../domain/summaries.ts';

/** Characters, as JavaScript counts them. Two to three sentences, and up to six, need far less. */
export const answerCharactersMax: Readonly<Record<SummaryKind, number>> = {
  product: 1200,
  digest: 2400,
};
