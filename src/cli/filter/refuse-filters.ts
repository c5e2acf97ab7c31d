/** Keeps filters with errors from the catalogue, and prints the warnings of the others. */
import {
  checkSubscriptionFilter,
  type FilterReport,
  hasErrors,
  namesToBeMade,
} from '../../admin/plan/check-filters.ts';
import type { Plan } from '../../admin/plan/plan.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { showFinding } from '../../filter/show-finding.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';
import { findingText } from './read-filter.ts';

/**
 * Throws `configuration` when a subscription that the plan creates, or replaces, has a filter with an error.
 * All else is told on stderr: the filter of one that runs already has been accepted.
 */
export function refuseFilters(
  desired: readonly DesiredSubscription[],
  plan: Pick<Plan, 'steps'>,
  io: Pick<Io, 'env' | 'stderr'>,
): void {
  const toBeMade = namesToBeMade(plan);
  const reports = desired.flatMap((one) => withoutRepeats(checkSubscriptionFilter(one)));
  const refused = reports.filter((report) => hasErrors(report) && toBeMade.has(report.name));
  for (const report of reports) if (!refused.includes(report)) warn(report, io);
  if (refused.length === 0) return;
  throw new AppError('configuration', 'A filter has errors, so nothing was changed.', {
    advice: 'To register it as it is, add --skip-filter-check.',
    details: refused.flatMap(errorTexts),
  });
}

/** What is wrong for one kind of product is told once, though it is wrong for the other too. */
function withoutRepeats(reports: readonly FilterReport[]): FilterReport[] {
  const told = new Set<string>();
  return reports.flatMap((report) => {
    const findings = report.findings.filter(({ start, message }) => {
      const key = `${start} ${message}`;
      return !told.has(key) && told.add(key);
    });
    return findings.length === 0 ? [] : [{ ...report, findings }];
  });
}

function errorTexts({ name, entity, filter, findings }: FilterReport): string[] {
  return findings
    .filter(({ severity }) => severity === 'error')
    .map((finding) => `"${name}", filter of ${entity}: ${showFinding(filter, finding)}`);
}

function warn({ name, filter, findings }: FilterReport, io: Pick<Io, 'env' | 'stderr'>): void {
  const label = painter(io, io.stderr)('yellow', `The filter of "${printable(name)}"`);
  for (const finding of findings) {
    io.stderr.write(`${label}: ${findingText(filter, finding, io, io.stderr)}`);
  }
}
