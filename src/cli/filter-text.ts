/** Reads a filter that the user has written, and tells what is wrong with it as a compiler does. */
import { AppError } from '../domain/app-error.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import { checkFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import type { Io, Output } from './io.ts';
import { painter } from './output.ts';

/** The tree of a filter; null for a blank one, which everything matches. Throws `usage`; warns on stderr. */
export function readFilter(
  text: string,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) {
    const details = errors.map((finding) => showFinding(text, finding));
    throw new AppError('usage', `The filter cannot be used for ${entity}.`, { details });
  }
  // What would be slow at the catalogue is not so here.
  const told = findings.filter(({ code }) => code !== 'name-without-collection');
  for (const finding of told) io.stderr.write(findingText(text, finding, io, io.stderr));
  return tree;
}

/** A finding in several lines, its first word in colour, for the stream it goes to. */
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
