/** Spans of time: joined, cut out of one another, and measured. Sorted, without overlaps; times in µs. */

/** From `fromUs` (included) until `toUs` (excluded). */
export interface Span {
  fromUs: number;
  toUs: number;
}

/** The spans within [fromUs, toUs). */
export function clipped(spans: readonly Span[], fromUs: number, toUs: number): Span[] {
  return spans
    .map((span) => ({
      fromUs: Math.max(span.fromUs, fromUs),
      toUs: Math.min(span.toUs, toUs),
    }))
    .filter((span) => span.fromUs < span.toUs);
}

/** The spans without what lies within any of the others, which may overlap and come in any order. */
export function without(spans: readonly Span[], others: readonly Span[]): Span[] {
  return others.reduce<Span[]>(
    (left, other) =>
      left.flatMap(({ fromUs, toUs }) =>
        // What comes before the other, and what comes after it.
        [
          { fromUs, toUs: Math.min(toUs, other.fromUs) },
          { fromUs: Math.max(fromUs, other.toUs), toUs },
        ].filter((rest) => rest.fromUs < rest.toUs),
      ),
    [...spans],
  );
}

/** The part of [fromUs, toUs) that the spans cover, 0 to 1. */
export function shareOf(spans: readonly Span[], fromUs: number, toUs: number): number {
  const coveredUs = clipped(spans, fromUs, toUs).reduce(
    (sum, span) => sum + span.toUs - span.fromUs,
    0,
  );
  return coveredUs / (toUs - fromUs);
}
