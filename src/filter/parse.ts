/** Parses the text of a filter into a tree, by recursive descent (grammar: facts, filters 1). */

import { parseAttribute } from './attribute-condition.ts';
import {
  type ConditionParts,
  Cursor,
  filterDepthMax,
  filterLengthMax,
  parseOperation,
  type Token,
  unquoted,
} from './cursor.ts';
import { findField } from './fields.ts';
import type { FilterTree, IntersectsNode, TextFunction } from './filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, quoted, type Span } from './finding.ts';
import { functionFault, openSearchFault, undocumentedForm, wrappingFault } from './hints.ts';
import { parseWkt } from './wkt.ts';

export interface ParsedFilter {
  readonly tree: FilterTree;
  /** Spans of nodes, literals, geometries and positions, by object identity. */
  readonly spans: ReadonlyMap<object, Span>;
  /** Spans of the other parts of each condition. */
  readonly parts: ReadonlyMap<object, ConditionParts>;
  /** Warnings about the syntax. */
  readonly findings: readonly FilterFinding[];
}

/**
 * Parses a filter. Nested groups are flattened: `(a and b) and c` is one `and` with three terms. Throws
 * FilterSyntaxError at the first position that cannot be parsed, for a text over the limits, and for a NUL character,
 * which ends strings in databases. Does not check that properties exist.
 */
export function parseFilter(text: string): ParsedFilter {
  if (text.length > filterLengthMax) {
    const message = `The filter has ${text.length} characters; the maximum is ${filterLengthMax}.`;
    const span = { start: filterLengthMax, end: text.length };
    throw new FilterSyntaxError(span, { code: 'too-long', message });
  }
  const start = text.indexOf('\0');
  if (start >= 0) {
    const message = 'The filter contains a NUL character (U+0000).';
    const fault = { code: 'wrong-character', message, hint: 'Remove it.' } as const;
    throw new FilterSyntaxError({ start, end: start + 1 }, fault);
  }
  const wrapping = wrappingFault(text);
  if (wrapping !== null) throw new FilterSyntaxError(wrapping, wrapping);
  const cursor = new Cursor(text);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind !== 'end') failAfterCondition(cursor);
  // Otherwise the canonical form could not be parsed.
  if (levelsOf(tree) > filterDepthMax) failTooDeep(cursor, { start: 0, end: text.length });
  return { tree, spans: cursor.spans, parts: cursor.parts, findings: cursor.warnings };
}

/** Nesting of the parentheses in the canonical form. */
function levelsOf(tree: FilterTree): number {
  if (tree.node === 'not') return 1 + levelsOf(tree.term);
  if (tree.node !== 'and' && tree.node !== 'or') return 0;
  const levels = tree.terms.map((one) => levelsOf(one) + Number('terms' in one));
  return Math.max(...levels);
}

function failTooDeep(cursor: Cursor, span: Span): never {
  const message = `The filter is nested deeper than ${filterDepthMax} levels.`;
  const hint = 'Remove unnecessary parentheses.';
  return cursor.fail(span, { code: 'too-deep', message, hint });
}

/** Parses conditions joined by `or`, each of which may be conditions joined by `and`. */
function parseGroup(cursor: Cursor, operator: 'and' | 'or'): FilterTree {
  const { start } = cursor.peek();
  const terms: FilterTree[] = [];
  do {
    terms.push(operator === 'or' ? parseTermOfOr(cursor, terms.length > 0) : parseUnary(cursor));
  } while (cursor.takeOneOf([operator]) !== undefined);
  const [first, second] = terms;
  if (first !== undefined && second === undefined) return first;
  const flat = terms.flatMap((term) => (term.node === operator ? term.terms : [term]));
  const group = { node: operator, terms: flat };
  cursor.spans.set(group, { start, end: cursor.lastEnd });
  return group;
}

/**
 * Parses an `and` group inside an `or`. Without parentheses, its meaning depends on an operator precedence that the
 * catalogue does not document.
 */
function parseTermOfOr(cursor: Cursor, hasPrevious: boolean): FilterTree {
  const { start } = cursor.peek();
  const term = parseGroup(cursor, 'and');
  const isBare = term.node === 'and' && !cursor.parenthesised.has(term);
  if (!isBare || !(hasPrevious || cursor.isKeyword('or'))) return term;
  const message =
    'In OData, `and` takes precedence over `or`; the catalogue documents no precedence.';
  const hint = 'Put parentheses around this part.';
  cursor.warn({ start, end: cursor.lastEnd }, { code: 'precedence', message, hint });
  return term;
}

function parseUnary(cursor: Cursor): FilterTree {
  if (!cursor.isKeyword('not')) return parsePrimary(cursor);
  const { start } = cursor.takeKeyword('not');
  const inner = cursor.peek();
  const term = parsePrimary(cursor);
  if (inner.raw !== '(' && (term.node === 'comparison' || term.node === 'in')) {
    const message =
      'The catalogue does not document `not` before a comparison without parentheses.';
    const hint = 'Put the comparison in parentheses.';
    const span = { start: inner.start, end: cursor.lastEnd };
    cursor.warn(span, { code: 'precedence', message, hint });
  }
  const node = { node: 'not', term } as const;
  cursor.spans.set(node, { start, end: cursor.lastEnd });
  return node;
}

function parsePrimary(cursor: Cursor): FilterTree {
  if (!cursor.isSymbol('(')) return parseCondition(cursor);
  const opening = cursor.take();
  cursor.depth += 1;
  if (cursor.depth > filterDepthMax) failTooDeep(cursor, opening);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind === 'end') {
    const message = `The parenthesis at character ${opening.start + 1} is not closed.`;
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected: '`)`' });
  }
  if (!cursor.isSymbol(')')) failAfterCondition(cursor);
  cursor.take();
  cursor.depth -= 1;
  cursor.parenthesised.add(tree);
  return tree;
}

/** Fails for anything but `and`, `or` or the end after a condition. */
function failAfterCondition(cursor: Cursor): never {
  const { kind, raw } = cursor.peek();
  const expected = cursor.depth > 0 ? '`and`, `or` or `)`' : '`and`, `or` or the end';
  if (raw === ')') {
    const message = 'There is no matching open parenthesis.';
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected });
  }
  if (kind !== 'word' && raw !== '(') cursor.failUnexpected({ expected });
  const message = `\`and\` or \`or\` is missing before ${quoted(raw)}.`;
  cursor.failUnexpected({ code: 'missing-joint', message, expected });
}

const textFunctions: readonly TextFunction[] = ['contains', 'startswith', 'endswith'];
const reserved = /^(?:and|or|not|in|eq|ne|lt|le|gt|ge|true|false|null)$/i;
const [intersectsFunction, shortIntersects] = ['OData.CSC.Intersects', 'Intersects'];

/** Parses one condition: a comparison, a string function, an attribute condition or an intersection. */
function parseCondition(cursor: Cursor): FilterTree {
  const token = cursor.peek();
  const { kind, raw } = token;
  if (kind !== 'word' || reserved.test(raw)) failCondition(cursor);
  if (cursor.peekSecond().raw !== '(') return parseComparison(cursor);
  const { start } = token;
  const name = cursor.takeOneOf(textFunctions);
  if (name !== undefined) return parseText(cursor, name, start);
  if (cursor.takeOneOf([intersectsFunction])) return parseIntersects(cursor, start);
  // As two public clients write it.
  if (cursor.takeOneOf([shortIntersects])) {
    const problem = 'The prefix of the function is missing.';
    cursor.warn(token, undocumentedForm(problem, `Write ${intersectsFunction}.`));
    return parseIntersects(cursor, start);
  }
  if (/^attributes\//i.test(raw)) return parseAttribute(cursor);
  return cursor.fail(token, functionFault(raw));
}

function failCondition(cursor: Cursor): never {
  cursor.failUnexpected({
    code: 'missing-condition',
    message: 'A condition is missing.',
    expected: "a condition such as Name eq '…', contains(Name,'…') or OData.CSC.Intersects(…)",
  });
}

function parseComparison(cursor: Cursor): FilterTree {
  const span = cursor.take();
  const { start } = span;
  const field = publishedName(span);
  if (cursor.isSymbol(':')) {
    cursor.fail({ start, end: cursor.peek().end }, openSearchFault(field));
  }
  const {
    span: operatorSpan,
    operator,
    literals,
  } = parseOperation(cursor, {
    isId: field === 'Id',
    ofUnknown: findField(field) === undefined ? span.raw : null,
  });
  const node: FilterTree =
    operator === 'in'
      ? { node: 'in', field, literals }
      : { node: 'comparison', field, operator, literal: literals[0] };
  return cursor.add(node, start, { field: span, operator: operatorSpan });
}

function parseText(cursor: Cursor, name: TextFunction, start: number): FilterTree {
  cursor.takeSymbol('(');
  if (cursor.peek().kind !== 'word') cursor.failUnexpected({ expected: 'a property' });
  const field = cursor.take();
  cursor.takeSymbol(',');
  const token = cursor.peek();
  if (token.kind !== 'text') {
    const isValue = token.kind === 'word' || token.kind === 'number' || token.kind === 'date';
    const hint = `Put strings in single quotes: ${quoted(`'${token.raw}'`)}`;
    const fault = isValue ? ({ code: 'unquoted-text', hint } as const) : {};
    cursor.failUnexpected({ expected: 'a string in single quotes', ...fault });
  }
  const text = unquoted(cursor.take().raw);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'text', function: name, field: publishedName(field), text } as const;
  return cursor.add(node, start, { field, text: token });
}

/** Returns the published spelling of a known property; other names as written. */
function publishedName({ raw }: Token): string {
  return findField(raw)?.name ?? raw;
}

const geographyForm = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

/** Parses the argument of the function: `(area=geography'SRID=4326;…')`. */
function parseIntersects(cursor: Cursor, start: number): FilterTree {
  cursor.takeSymbol('(');
  const argument = parseArgument(cursor);
  const { srid, geometry } = parseWkt(cursor, parseGeography(cursor));
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'intersects', argument, srid: srid.value, geometry } as const;
  return cursor.add(node, start, { srid: srid.span });
}

/** Parses `area=` or `Footprint=`; two public clients write a comma instead of the equals sign. */
function parseArgument(cursor: Cursor): IntersectsNode['argument'] {
  const argument = cursor.takeOneOf(['area', 'Footprint']);
  const hint = `Write ${intersectsFunction}(area=${geographyForm}).`;
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  const isComma = cursor.isSymbol(',');
  const sign = isComma ? cursor.take() : cursor.takeSymbol('=', { hint });
  if (isComma) {
    const problem = 'The documented form has an equals sign instead of the comma.';
    cursor.warn(sign, undocumentedForm(problem, `Write ${argument}=geography'…'.`));
  }
  return argument;
}

/** Parses `geography'…'`, which must not contain a space before the quote. */
function parseGeography(cursor: Cursor): Token {
  if (!cursor.isKeyword('geography')) cursor.failUnexpected({ expected: geographyForm });
  const { end } = cursor.takeKeyword('geography');
  const { kind, start } = cursor.peek();
  if (kind !== 'text' || start > end) cursor.failUnexpected({ expected: geographyForm });
  return cursor.take();
}
