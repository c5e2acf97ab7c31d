/** A rule with its filters made ready, so that each is read once and not for each product. */
import type { DigestWindow } from '../../domain/summaries.ts';
import type { SummaryRule } from '../../domain/summary-rule.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';

export type CompiledRule =
  | { kind: 'off' }
  /** Null: every product matches. */
  | { kind: 'each'; matches: ProductTest | null }
  | {
      kind: 'digest';
      window: DigestWindow;
      per: 'all' | 'collection';
      areas: readonly { name: string; filter: string; matches: ProductTest | null }[];
    };

/** The rule of a subscription, by the name in its path. */
export type RuleOf = (subscription: string | null) => CompiledRule;

/** Throws `invalid` for a filter that is none. */
export function compileRules(
  bySubscription: ReadonlyMap<string, SummaryRule>,
  otherwise: SummaryRule,
): RuleOf {
  const compiled = new Map([...bySubscription].map(([name, rule]) => [name, compile(rule)]));
  const usual = compile(otherwise);
  return (subscription) => compiled.get(subscription ?? '') ?? usual;
}

function compile(rule: SummaryRule): CompiledRule {
  switch (rule.kind) {
    case 'off':
      return rule;
    case 'each':
      return { kind: 'each', matches: testOf(rule.filter) };
    case 'digest': {
      const areas = rule.areas.map((area) => ({ ...area, matches: testOf(area.filter) }));
      return { ...rule, areas };
    }
  }
}

function testOf(filter: string): ProductTest | null {
  const tree = requireFilter(filter, 'Products');
  return tree === null ? null : compileFilter(tree);
}
