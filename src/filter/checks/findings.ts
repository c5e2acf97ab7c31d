/** Gathers what a check finds, and knows where each part of the filter stands. */
import type { Entity } from '../../domain/filter-tree.ts';
import type { FilterFinding, Span } from '../finding.ts';
import { type Effort, newEffort } from '../geometry/effort.ts';
import type { Fault } from '../hints/unexpected.ts';
import type { ParsedFilter } from '../parse.ts';
import type { ConditionParts } from '../syntax/cursor.ts';

export interface Findings {
  readonly entity: Entity;
  readonly found: FilterFinding[];
  /** For all geometries of the filter together. */
  readonly effort: Effort;
  error(span: Span, fault: Fault): void;
  warn(span: Span, fault: Fault): void;
  /** Where a part of a condition stands. */
  spanOf(node: object, part: keyof ConditionParts): Span;
  /** Where a literal, a geometry, a ring or a position stands. */
  spanOfObject(part: object): Span;
  /** A span's text as written. */
  written(span: Span): string;
}

export function createFindings(text: string, parsed: ParsedFilter, entity: Entity): Findings {
  const found: FilterFinding[] = [];
  const whole: Span = { start: 0, end: text.length };
  const add = (severity: FilterFinding['severity'], { start, end }: Span, fault: Fault) => {
    found.push({ severity, ...fault, start, end });
  };
  const spanOfObject = (part: object) => parsed.spans.get(part) ?? whole;
  return {
    entity,
    found,
    effort: newEffort(),
    error: (span, fault) => add('error', span, fault),
    warn: (span, fault) => add('warning', span, fault),
    spanOf: (node, part) => parsed.parts.get(node)?.[part] ?? spanOfObject(node),
    spanOfObject,
    written: ({ start, end }) => text.slice(start, end),
  };
}
