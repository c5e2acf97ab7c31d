/** What a user wants to be told about a subscription's products, and how often. */
import type { DigestWindow } from './summaries.ts';

export const summaryRuleKinds = ['off', 'each', 'digest'] as const;
export type SummaryRuleKind = (typeof summaryRuleKinds)[number];

/** A part of what arrives, by the user's own word for it. */
export interface SummaryArea {
  /** 1 to 60 printable characters. */
  name: string;
  /** A `$filter` expression of `Products`; blank for every product. */
  filter: string;
}

export type SummaryRule =
  | { kind: 'off' }
  /** One text per product that matches the filter; blank for every product. */
  | { kind: 'each'; filter: string }
  /** One text per window: for all, for each collection, or, where there are any, for each area. */
  | {
      kind: 'digest';
      window: DigestWindow;
      per: 'all' | 'collection';
      areas: readonly SummaryArea[];
    };

/** A rule that says nothing but its kind: each product, and one digest of all a day. */
export function plainSummaryRule(kind: SummaryRuleKind): SummaryRule {
  if (kind === 'each') return { kind, filter: '' };
  if (kind === 'digest') return { kind, window: 'day', per: 'all', areas: [] };
  return { kind };
}

/** Whether none of them asks for a text. */
export function areAllOff(rules: Iterable<SummaryRule>): boolean {
  return [...rules].every(({ kind }) => kind === 'off');
}
