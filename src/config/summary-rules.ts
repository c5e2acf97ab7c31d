/** The rules of `earshot.config.ts` that say what is told in words; here, as they bring the filter language along. */
import { join } from 'node:path';
import { AppError } from '../domain/app-error.ts';
import type { SummaryRule } from '../domain/summary-rule.ts';
import { checkFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import { faultsOf, readSubscriptions, subscriptionsFileName } from './subscriptions-file.ts';

/**
 * The rules of the subscriptions that state one, by the subscription's name; none without a file. Rejects
 * with `configuration`, all problems at once, those of filters too: earshot alone reads these, so there is
 * nobody else to judge them.
 */
export async function loadSummaryRules(folder: string): Promise<ReadonlyMap<string, SummaryRule>> {
  const path = join(folder, subscriptionsFileName);
  const subscriptions = await readSubscriptions(path);
  const rules = new Map<string, SummaryRule>();
  for (const [name, { summary }] of Object.entries(subscriptions ?? {})) {
    if (summary !== undefined) rules.set(name, summary);
  }
  const details = ruleFilterFindings(rules)
    .filter(({ finding }) => finding.severity === 'error')
    .map(({ where, filter, finding }) => `${where}: ${showFinding(filter, finding)}`);
  if (details.length > 0) throw new AppError('configuration', faultsOf(path), { details });
  return rules;
}

/** A finding about a filter of a rule, with its place in the file. */
export interface RuleFilterFinding {
  /** Such as `subscriptions.alps.summary.each.filter`. */
  where: string;
  filter: string;
  finding: FilterFinding;
}

/** What is to be told about the filters of rules; of those that were loaded only what might not be meant. */
export function ruleFilterFindings(
  rules: ReadonlyMap<string, SummaryRule>,
): readonly RuleFilterFinding[] {
  return [...rules].flatMap(([name, rule]) =>
    filtersIn(rule).flatMap(([place, filter]) =>
      checkFilter(filter, 'Products')
        // What would be slow at the catalogue is not so here.
        .findings.filter(({ code }) => code !== 'name-without-collection')
        .map((finding) => ({ where: `subscriptions.${name}.summary.${place}`, filter, finding })),
    ),
  );
}

/** The filters of a rule, each with its place in the file. */
function filtersIn(rule: SummaryRule): [where: string, filter: string][] {
  if (rule.kind === 'each') return [['each.filter', rule.filter]];
  if (rule.kind === 'off') return [];
  return rule.areas.map(({ name, filter }) => [`digest.areas.${name}`, filter]);
}
