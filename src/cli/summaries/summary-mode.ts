/** What the rules of all subscriptions ask for, in one word. */
import type { Config } from '../../config/config.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import type { SummaryRuleKind } from '../../domain/summary-rule.ts';

/** `each` where any asks for it. Rejects with `configuration` when the rules cannot be read. */
export async function summaryModeOf(
  { rule }: Pick<Config['summary'], 'rule'>,
  workingDir: string,
): Promise<SummaryRuleKind> {
  const rules = await loadSummaryRules(workingDir);
  const kinds = [rule, ...[...rules.values()].map(({ kind }) => kind)];
  const asked = (['each', 'digest'] as const).find((kind) => kinds.includes(kind));
  return asked ?? 'off';
}
