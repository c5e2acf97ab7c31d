/** Summary rules of `earshot.config.ts`. Not in `subscriptions-file.ts`, because they load the filter language. */
import { join } from 'node:path';
import { filterErrors, filterFindings, type PlacedFinding } from '../../core/cli/row-forms.ts';
import {
  type ConfigPlace,
  faultsOf,
  readConfigFile,
  subscriptionsFileName,
} from '../../core/config/subscriptions-file.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { SummaryRule, SummaryRuleKind } from './terms.ts';

/**
 * Loads the rules of the subscriptions that define one, by subscription name; none without a file. Rejects with
 * `configuration`, with all problems, including those of filters, which only earshot evaluates.
 */
export async function loadSummaryRules(
  place: ConfigPlace,
): Promise<ReadonlyMap<string, SummaryRule>> {
  const rules = new Map<string, SummaryRule>();
  const subscriptions = (await readConfigFile(place))?.subscriptions ?? {};
  for (const [name, { summary }] of Object.entries(subscriptions)) {
    if (summary !== undefined) rules.set(name, summary);
  }
  const details = filterErrors(ruleFilterFindings(rules));
  const path = join(place.workingDir, subscriptionsFileName);
  if (details.length > 0) throw new AppError('configuration', faultsOf(path), { details });
  return rules;
}

/** Returns findings about the filters of rules; loaded rules only have warnings. */
export function ruleFilterFindings(
  rules: ReadonlyMap<string, SummaryRule>,
): readonly PlacedFinding[] {
  return filterFindings(
    [...rules].flatMap(([name, { kind, filter }]) =>
      // The empty filter is the default.
      kind === 'off' || filter === ''
        ? []
        : [[`subscriptions.${name}.summary.${kind}.filter`, filter] as const],
    ),
  );
}

/**
 * Returns the combined mode of all rules: `each` if any has it. Rejects with `configuration` when the rules cannot be
 * read.
 */
export async function summaryModeOf(
  { rule }: { rule: SummaryRuleKind },
  place: ConfigPlace,
): Promise<SummaryRuleKind> {
  const rules = await loadSummaryRules(place);
  const kinds = [rule, ...[...rules.values()].map(({ kind }) => kind)];
  const mode = (['each', 'digest'] as const).find((kind) => kinds.includes(kind));
  return mode ?? 'off';
}
