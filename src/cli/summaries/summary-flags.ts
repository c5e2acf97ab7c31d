/** What `earshot query summaries` takes; apart, so that a help text loads nothing else. */
import type { SummaryKind, SummaryState } from '../../domain/summaries.ts';
import type { OutputForm } from '../notification-output.ts';
import type { OutputFlags } from '../shared-flags.ts';

/** A person's first look; programs get everything unless they set a limit. */
export const summaryRowsDefault = 20;

export interface QuerySummariesFlags extends OutputFlags<OutputForm> {
  kind?: SummaryKind;
  state?: SummaryState;
  productId?: string;
  subscription?: string;
  unverified?: true;
  since?: number;
  until?: number;
  before?: number;
  limit?: number;
}
