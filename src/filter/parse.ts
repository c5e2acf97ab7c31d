/** Reads the text of a filter into a tree, by recursive descent along the grammar (facts, filters 1). */
import type { FilterTree, IntersectsNode, TextFunction } from '../domain/filter-tree.ts';
import { parseAttribute } from './attribute-condition.ts';
import {
  type ConditionParts,
  Cursor,
  filterLengthMax,
  parseOperation,
  type Token,
  unquoted,
} from './cursor.ts';
import { findField } from './fields.ts';
import { type FilterFinding, FilterSyntaxError, named, type Span } from './finding.ts';
import { functionFault, openSearchFault, undocumentedForm, wrappingFault } from './hints.ts';
import { parseWkt } from './wkt.ts';

export interface ParsedFilter {
  readonly tree: FilterTree;
  /** Where the nodes, literals, geometries and positions of the tree stood, by identity. */
  readonly spans: ReadonlyMap<object, Span>;
  /** Where the other parts of each condition stood. */
  readonly parts: ReadonlyMap<object, ConditionParts>;
  /** Warnings about the form. */
  readonly findings: readonly FilterFinding[];
}

/**
 * Reads a filter. Groups flatten: `(a and b) and c` is one `and` of three. Throws FilterSyntaxError at the first place
 * that cannot be read, for a text beyond the limits, and for any NUL: databases end texts there. Whether the fields
 * exist is not asked here.
 */
export function parseFilter(text: string): ParsedFilter {
  if (text.length > filterLengthMax) {
    const message = `The filter has ${text.length} characters; ${filterLengthMax} are the most.`;
    const place = { start: filterLengthMax, end: text.length };
    throw new FilterSyntaxError(place, { code: 'too-long', message });
  }
  const start = text.indexOf('\0');
  if (start >= 0) {
    const message = 'The filter holds a NUL character (U+0000), which no name has.';
    const fault = { code: 'wrong-character', message, hint: 'Leave it out.' } as const;
    throw new FilterSyntaxError({ start, end: start + 1 }, fault);
  }
  const wrapping = wrappingFault(text);
  if (wrapping !== null) throw new FilterSyntaxError(wrapping, wrapping);
  const cursor = new Cursor(text);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind !== 'end') failJoint(cursor);
  return { tree, spans: cursor.spans, parts: cursor.parts, findings: cursor.warnings };
}

/** Conditions joined by `or`, each of which may be conditions joined by `and`. */
function parseGroup(cursor: Cursor, joint: 'and' | 'or'): FilterTree {
  const { start } = cursor.peek();
  const terms: FilterTree[] = [];
  do {
    terms.push(joint === 'or' ? parseTermOfOr(cursor, terms.length > 0) : parseUnary(cursor));
  } while (cursor.takeOneOf([joint]) !== undefined);
  const [first, second] = terms;
  if (first !== undefined && second === undefined) return first;
  const flat = terms.flatMap((term) => (term.node === joint ? term.terms : [term]));
  const group = { node: joint, terms: flat };
  cursor.spans.set(group, { start, end: cursor.lastEnd });
  return group;
}

/** Reads a part, and gives the levels that its own canonical text has. */
function withLevels(cursor: Cursor, read: () => FilterTree) {
  const before = cursor.deepest;
  cursor.deepest = cursor.depth;
  const { start } = cursor.peek();
  const term = read();
  const levels = cursor.deepest;
  cursor.deepest = Math.max(before, levels);
  return { term, levels, span: { start, end: cursor.lastEnd } };
}

/**
 * An `and` inside an `or`. Written without parentheses it takes a level more in the canonical text, and its meaning
 * rests on a precedence that the catalogue does not document.
 */
function parseTermOfOr(cursor: Cursor, follows: boolean): FilterTree {
  const { term, levels, span } = withLevels(cursor, () => parseGroup(cursor, 'and'));
  const isBare = term.node === 'and' && !cursor.parenthesised.has(term);
  if (!isBare || !(follows || cursor.isKeyword('or'))) return term;
  cursor.deepen(span, levels + 1);
  const message = '`and` binds before `or` here, as in OData; the catalogue does not document it.';
  cursor.warn(span, { code: 'precedence', message, hint: 'Put parentheses around this part.' });
  return term;
}

function parseUnary(cursor: Cursor): FilterTree {
  if (!cursor.isKeyword('not')) return parsePrimary(cursor);
  const { start } = cursor.takeKeyword('not');
  if (cursor.isKeyword('not')) {
    const message = '`not` cannot follow `not`.';
    cursor.failUnexpected({ message, hint: 'Put parentheses: not (not (…)).' });
  }
  const isBare = cursor.peek().raw !== '(';
  const { term, levels, span } = withLevels(cursor, () => parsePrimary(cursor));
  if (isBare) cursor.deepen(span, levels + 1);
  if (isBare && (term.node === 'comparison' || term.node === 'in')) {
    const message = '`not` stands before a bare comparison; how far it reaches is not documented.';
    cursor.warn(span, { code: 'precedence', message, hint: 'Put the comparison in parentheses.' });
  }
  const node = { node: 'not', term } as const;
  cursor.spans.set(node, { start, end: cursor.lastEnd });
  return node;
}

function parsePrimary(cursor: Cursor): FilterTree {
  if (!cursor.isSymbol('(')) return parseCondition(cursor);
  const opening = cursor.take();
  cursor.depth += 1;
  cursor.deepen(opening, cursor.depth);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind === 'end') {
    const message = `The parenthesis that opens at character ${opening.start + 1} is never closed.`;
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected: '`)`' });
  }
  if (!cursor.isSymbol(')')) failJoint(cursor);
  cursor.take();
  cursor.depth -= 1;
  cursor.parenthesised.add(tree);
  return tree;
}

/** Between two conditions stands something else than `and` or `or`. */
function failJoint(cursor: Cursor): never {
  const { kind, raw } = cursor.peek();
  const expected = cursor.depth > 0 ? '`and`, `or` or `)`' : '`and`, `or` or the end';
  if (raw === ')') {
    const message = 'No parenthesis is open that this one could close.';
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected });
  }
  if (kind !== 'word' && raw !== '(') cursor.failUnexpected({ expected });
  if (/^(?:eq|ne|lt|le|gt|ge)$/i.test(raw)) {
    const hint = 'A function is a condition by itself: leave out the comparison.';
    cursor.failUnexpected({ expected, hint });
  }
  const message = `\`and\` or \`or\` is missing before ${named(raw)}.`;
  cursor.failUnexpected({ code: 'missing-joint', message, expected });
}

const textFunctions: readonly TextFunction[] = ['contains', 'startswith', 'endswith'];
const reserved = /^(?:and|or|not|in|eq|ne|lt|le|gt|ge|true|false|null)$/i;
const [intersectsFunction, shortIntersects] = ['OData.CSC.Intersects', 'Intersects'];

/** Reads one condition: a comparison, a text function, an attribute's value, or a place. */
function parseCondition(cursor: Cursor): FilterTree {
  const token = cursor.peek();
  const { kind, raw } = token;
  if (kind !== 'word' || reserved.test(raw)) failCondition(cursor, token);
  if (cursor.peekSecond().raw !== '(') return parseComparison(cursor);
  const { start } = token;
  const name = cursor.takeOneOf(textFunctions);
  if (name !== undefined) return parseText(cursor, name, start);
  if (cursor.takeOneOf([intersectsFunction])) return parseIntersects(cursor, start);
  // As two public clients write it.
  if (cursor.takeOneOf([shortIntersects])) {
    const what = 'The function is written without its prefix.';
    cursor.warn(token, undocumentedForm(what, `Write ${intersectsFunction}.`));
    return parseIntersects(cursor, start);
  }
  if (/^attributes\//i.test(raw)) return parseAttribute(cursor);
  const expected = 'contains, startswith, endswith, OData.CSC.Intersects or Attributes/…/any';
  return cursor.fail(token, { ...functionFault(raw), expected });
}

function failCondition(cursor: Cursor, { kind, raw }: Token): never {
  const isValue = kind === 'text' || kind === 'number' || kind === 'date';
  cursor.failUnexpected({
    code: 'missing-condition',
    message: isValue
      ? `A condition cannot begin with the value ${named(raw)}.`
      : 'A condition is missing here.',
    expected: "a condition such as Name eq '…', contains(Name,'…') or OData.CSC.Intersects(…)",
    hint: isValue ? 'Write the field first, then the operator, then the value.' : null,
  });
}

function parseComparison(cursor: Cursor): FilterTree {
  const span = cursor.take();
  const { start } = span;
  const field = publishedName(span);
  if (cursor.isSymbol(':')) {
    cursor.fail({ start, end: cursor.peek().end }, openSearchFault(field));
  }
  const { span: operatorSpan, operator, literals } = parseOperation(cursor, field === 'Id');
  const node: FilterTree =
    operator === 'in'
      ? { node: 'in', field, literals }
      : { node: 'comparison', field, operator, literal: literals[0] };
  return cursor.add(node, start, { field: span, operator: operatorSpan });
}

function parseText(cursor: Cursor, name: TextFunction, start: number): FilterTree {
  cursor.takeSymbol('(');
  if (cursor.peek().kind === 'text') {
    const message = `The field comes first in ${name}.`;
    cursor.failUnexpected({ message, expected: 'a field', hint: `Write ${name}(Name,'…').` });
  }
  if (cursor.peek().kind !== 'word') cursor.failUnexpected({ expected: 'a field' });
  const field = cursor.take();
  cursor.takeSymbol(',');
  const token = cursor.peek();
  if (token.kind !== 'text') {
    const isValue = token.kind === 'word' || token.kind === 'number' || token.kind === 'date';
    const hint = `Put it in single quotes: ${named(`'${token.raw}'`)}`;
    const fault = isValue ? ({ code: 'unquoted-text', hint } as const) : {};
    cursor.failUnexpected({ expected: 'a text in single quotes', ...fault });
  }
  const text = unquoted(cursor.take().raw);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'text', function: name, field: publishedName(field), text } as const;
  return cursor.add(node, start, { field, text: token });
}

/** A field in its published spelling when it is known, else as written. */
function publishedName({ raw }: Token): string {
  return findField(raw)?.name ?? raw;
}

const geographyForm = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

/** Reads what follows the function: `(area=geography'SRID=4326;…')`. */
function parseIntersects(cursor: Cursor, start: number): FilterTree {
  cursor.takeSymbol('(');
  const argument = parseArgument(cursor);
  const { srid, geometry } = parseWkt(cursor, parseGeography(cursor));
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'intersects', argument, srid: srid.value, geometry } as const;
  return cursor.add(node, start, { srid: srid.span });
}

/** Takes `area=` or `Footprint=`; a comma instead of the sign is a form of two public clients. */
function parseArgument(cursor: Cursor): IntersectsNode['argument'] {
  const argument = cursor.takeOneOf(['area', 'Footprint']);
  const hint = `Write ${intersectsFunction}(area=${geographyForm}).`;
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  const isComma = cursor.isSymbol(',');
  const sign = isComma ? cursor.take() : cursor.takeSymbol('=', { hint });
  if (isComma) {
    const what = 'A comma stands where the documentation has an equals sign.';
    cursor.warn(sign, undocumentedForm(what, `Write ${argument}=geography'…'.`));
  }
  return argument;
}

/** Takes `geography'…'`; the text must follow the word at once. */
function parseGeography(cursor: Cursor): Token {
  if (!cursor.isKeyword('geography')) cursor.failUnexpected({ expected: geographyForm });
  const { end } = cursor.takeKeyword('geography');
  const { kind, start } = cursor.peek();
  if (kind !== 'text') cursor.failUnexpected({ expected: geographyForm });
  if (start > end) {
    const message = 'No blank may stand between `geography` and its text.';
    const fault = { code: 'wrong-character', message, hint: 'Leave out the blank.' } as const;
    cursor.fail({ start: end, end: start }, fault);
  }
  return cursor.take();
}
