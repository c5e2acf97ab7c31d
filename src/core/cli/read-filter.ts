/** Parses filters, and prints the findings in the style of a compiler. */

import { checkFilter } from '../../filter/check.ts';
import type { Entity, FilterTree } from '../../filter/filter-tree.ts';
import { type FilterFinding, showFinding } from '../../filter/finding.ts';
import { AppError } from '../terms/app-error.ts';
import type { Io, Output } from './io.ts';
import { painter } from './output.ts';

/** Parses a filter to a tree; null for a blank one, which matches everything. Throws `usage`; warns on stderr. */
export function readFilter(
  text: string,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) {
    const details = errors.map((finding) => showFinding(text, finding));
    throw new AppError('usage', `The filter is not valid for ${entity}.`, { details });
  }
  // Such a filter is slow at the catalogue, but not in the product index.
  const shown = findings.filter(({ code }) => code !== 'name-without-collection');
  for (const finding of shown) io.stderr.write(findingText(text, finding, io, io.stderr));
  return tree;
}

/** Formats a finding as several lines, the first word in colour if the output supports it. */
export function findingText(
  text: string,
  finding: FilterFinding,
  io: Pick<Io, 'env'>,
  output: Output,
): string {
  const { severity } = finding;
  const label = painter(io, output)(severity === 'error' ? 'red' : 'yellow', severity);
  return `${label}${showFinding(text, finding).slice(severity.length)}\n`;
}
