/** Findings about the filters of earshot.config.ts that earshot evaluates. */
import { checkFilter } from '../../filter/check.ts';
import { type FilterFinding, showFinding } from '../../filter/finding.ts';

/** A finding about a filter that earshot evaluates. */
export interface PlacedFinding {
  /** Path in the file, such as `sinks.archive.filter`. */
  where: string;
  filter: string;
  finding: FilterFinding;
}

export function filterFindings(places: readonly [where: string, filter: string][]) {
  return places.flatMap(([where, filter]): PlacedFinding[] =>
    checkFilter(filter, 'Products')
      // Slow only at the catalogue.
      .findings.filter(({ code }) => code !== 'name-without-collection')
      .map((finding) => ({ where, filter, finding })),
  );
}

/** Returns the errors, one line each. */
export function filterErrors(findings: readonly PlacedFinding[]): string[] {
  return findings
    .filter(({ finding }) => finding.severity === 'error')
    .map(({ where, filter, finding }) => `${where}: ${showFinding(filter, finding)}`);
}
