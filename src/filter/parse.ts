/** Reads the text of a filter into a tree, by recursive descent along the grammar (facts, filters 1). */
import type { FilterTree, IntersectsNode, TextFunction } from '../domain/filter-tree.ts';
import { attributePath, parseAttribute } from './attribute-condition.ts';
import {
  type ConditionParts,
  Cursor,
  filterLengthMax,
  named,
  type Token,
  undocumentedForm,
  unquoted,
} from './cursor.ts';
import { findField } from './fields.ts';
import { type FilterFinding, FilterSyntaxError, type Span } from './finding.ts';
import { functionFault, openSearchFault, wrappingFault } from './hints.ts';
import { parseLiteral, parseLiterals, parseOperator } from './literal.ts';
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
 * Reads a filter. Groups flatten: `(a and b) and c` is one `and` of three. Throws FilterSyntaxError
 * at the first place that cannot be read, for a text beyond the limits, and for any NUL: databases end
 * texts there. Whether the fields exist is not asked here.
 */
export function parseFilter(text: string): ParsedFilter {
  if (text.length > filterLengthMax) {
    const message = `The filter has ${text.length} characters; ${filterLengthMax} are the most.`;
    const place = { start: filterLengthMax, end: text.length };
    throw new FilterSyntaxError({ severity: 'error', code: 'too-long', message, ...place });
  }
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    const message = 'The filter holds a NUL character (U+0000), which no name has.';
    const fault = { code: 'wrong-character', message, hint: 'Leave it out.' } as const;
    throw new FilterSyntaxError({ severity: 'error', ...fault, start: nul, end: nul + 1 });
  }
  const wrapping = wrappingFault(text);
  if (wrapping !== null) throw new FilterSyntaxError({ severity: 'error', ...wrapping });
  const cursor = new Cursor(text);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind !== 'end') failJoint(cursor);
  return { tree, spans: cursor.spans, parts: cursor.parts, findings: cursor.warnings };
}

/** Conditions joined by `or`, each of which may be conditions joined by `and`. */
function parseGroup(cursor: Cursor, joint: 'and' | 'or'): FilterTree {
  const { start } = cursor.peek();
  const terms: FilterTree[] = [];
  for (;;) {
    const term = joint === 'or' ? parseTermOfOr(cursor, terms.length > 0) : parseUnary(cursor);
    terms.push(term);
    if (!cursor.isKeyword(joint)) break;
    cursor.takeKeyword(joint);
  }
  const [first, second] = terms;
  if (first !== undefined && second === undefined) return first;
  const flat = terms.flatMap((term) => (term.node === joint ? term.terms : [term]));
  const group = { node: joint, terms: flat };
  cursor.spans.set(group, { start, end: cursor.lastEnd });
  return group;
}

/**
 * An `and` inside an `or`. Written without parentheses it takes a level more in the canonical text,
 * and its meaning rests on a precedence that the catalogue does not document.
 */
function parseTermOfOr(cursor: Cursor, follows: boolean): FilterTree {
  const { start } = cursor.peek();
  const before = cursor.deepest;
  cursor.deepest = cursor.depth;
  const term = parseGroup(cursor, 'and');
  if (
    term.node === 'and' &&
    !cursor.parenthesised.has(term) &&
    (follows || cursor.isKeyword('or'))
  ) {
    const span = { start, end: cursor.lastEnd };
    cursor.deepen(span, cursor.deepest + 1);
    const message =
      '`and` binds before `or` here, as in OData; the catalogue does not document it.';
    cursor.warn(span, { code: 'precedence', message, hint: 'Put parentheses around this part.' });
  }
  cursor.deepest = Math.max(before, cursor.deepest);
  return term;
}

function parseUnary(cursor: Cursor): FilterTree {
  if (!cursor.isKeyword('not')) return parsePrimary(cursor);
  const { start } = cursor.takeKeyword('not');
  if (cursor.isKeyword('not')) {
    const message = '`not` cannot follow `not`.';
    cursor.failUnexpected({ message, hint: 'Put parentheses: not (not (…)).' });
  }
  const before = cursor.deepest;
  cursor.deepest = cursor.depth;
  const inner = cursor.peek();
  const term = parsePrimary(cursor);
  const span = { start: inner.start, end: cursor.lastEnd };
  if (inner.raw !== '(') cursor.deepen(span, cursor.deepest + 1);
  if (inner.raw !== '(' && (term.node === 'comparison' || term.node === 'in')) {
    const message = '`not` stands before a bare comparison; how far it reaches is not documented.';
    cursor.warn(span, { code: 'precedence', message, hint: 'Put the comparison in parentheses.' });
  }
  cursor.deepest = Math.max(before, cursor.deepest);
  const node = { node: 'not', term } as const;
  cursor.spans.set(node, { start, end: cursor.lastEnd });
  return node;
}

function parsePrimary(cursor: Cursor): FilterTree {
  if (!cursor.isSymbol('(')) return parseCondition(cursor);
  const opening = cursor.take();
  cursor.open(opening);
  const tree = parseGroup(cursor, 'or');
  if (cursor.peek().kind === 'end') {
    const message = `The parenthesis that opens at character ${opening.start + 1} is never closed.`;
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected: '`)`' });
  }
  if (!cursor.isSymbol(')')) failJoint(cursor);
  cursor.take();
  cursor.close();
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
  const begins = kind === 'word' || raw === '(';
  if (!begins) cursor.failUnexpected({ expected });
  if (/^(?:eq|ne|lt|le|gt|ge)$/i.test(raw)) {
    const hint = 'A function is a condition by itself: leave out the comparison.';
    cursor.failUnexpected({ expected, hint });
  }
  const message = `\`and\` or \`or\` is missing before ${named(raw)}.`;
  cursor.failUnexpected({ code: 'missing-joint', message, expected });
}

const textFunctions: readonly TextFunction[] = ['contains', 'startswith', 'endswith'];

const reserved = /^(?:and|or|not|in|eq|ne|lt|le|gt|ge|true|false|null)$/i;

const wanted = {
  code: 'missing-condition',
  message: 'A condition is missing here.',
  expected: "a condition such as Name eq '…', contains(Name,'…') or OData.CSC.Intersects(…)",
} as const;

function parseCondition(cursor: Cursor): FilterTree {
  const token = cursor.peek();
  if (token.kind !== 'word' || reserved.test(token.raw)) failCondition(cursor, token);
  if (cursor.peekSecond().raw !== '(') return parseComparison(cursor);
  for (const name of textFunctions) if (cursor.isKeyword(name)) return parseText(cursor, name);
  if (isIntersects(cursor)) return parseIntersects(cursor);
  if (attributePath.test(token.raw)) return parseAttribute(cursor);
  return failFunction(cursor, token);
}

function failCondition(cursor: Cursor, token: Token): never {
  if (token.kind === 'text' || token.kind === 'number' || token.kind === 'date') {
    const message = `A condition cannot begin with the value ${named(token.raw)}.`;
    const hint = 'Write the field first, then the operator, then the value.';
    cursor.failUnexpected({ ...wanted, message, hint });
  }
  cursor.failUnexpected(wanted);
}

function failFunction(cursor: Cursor, token: Token): never {
  const expected = 'contains, startswith, endswith, OData.CSC.Intersects or Attributes/…/any';
  return cursor.fail(token, { ...functionFault(token.raw), expected });
}

function parseComparison(cursor: Cursor): FilterTree {
  const field = takeField(cursor);
  if (cursor.isSymbol(':')) {
    cursor.fail({ start: field.span.start, end: cursor.peek().end }, openSearchFault(field.name));
  }
  if (cursor.isKeyword('in')) return parseIn(cursor, field);
  const operatorToken = cursor.peek();
  const operator = parseOperator(cursor);
  const literal = parseLiteral(cursor, { isId: field.name === 'Id' });
  const node = { node: 'comparison', field: field.name, operator, literal } as const;
  return cursor.add(node, field.span.start, { field: field.span, operator: operatorToken });
}

function parseIn(cursor: Cursor, field: FieldPlace): FilterTree {
  const operator = cursor.takeKeyword('in');
  const literals = parseLiterals(cursor, { isId: field.name === 'Id' });
  const node = { node: 'in', field: field.name, literals } as const;
  return cursor.add(node, field.span.start, { field: field.span, operator });
}

function parseText(cursor: Cursor, name: TextFunction): FilterTree {
  const { start } = cursor.takeKeyword(name);
  cursor.takeSymbol('(');
  if (cursor.peek().kind === 'text') {
    const message = `The field comes first in ${name}.`;
    cursor.failUnexpected({ message, expected: 'a field', hint: `Write ${name}(Name,'…').` });
  }
  if (cursor.peek().kind !== 'word') cursor.failUnexpected({ expected: 'a field' });
  const field = takeField(cursor);
  cursor.takeSymbol(',');
  const token = cursor.peek();
  if (token.kind !== 'text') {
    const quotes = token.kind === 'word' || token.kind === 'number' || token.kind === 'date';
    const hint = `Put it in single quotes: ${named(`'${token.raw}'`)}`;
    const fault = quotes ? ({ code: 'unquoted-text', hint } as const) : {};
    cursor.failUnexpected({ expected: 'a text in single quotes', ...fault });
  }
  const text = unquoted(cursor.take().raw);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'text', function: name, field: field.name, text } as const;
  return cursor.add(node, start, { field: field.span, text: token });
}

interface FieldPlace {
  /** In its published spelling when it is known, else as written. */
  readonly name: string;
  readonly span: Token;
}

function takeField(cursor: Cursor): FieldPlace {
  const span = cursor.take();
  return { name: findField(span.raw)?.name ?? span.raw, span };
}

const intersectsFunction = 'OData.CSC.Intersects';

/** As two public clients write it. */
const shortFunction = 'Intersects';

const words: readonly IntersectsNode['argument'][] = ['area', 'Footprint'];

const form = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

/** True when the function for places comes next, with its prefix or without. */
function isIntersects(cursor: Cursor): boolean {
  return cursor.isKeyword(intersectsFunction) || cursor.isKeyword(shortFunction);
}

function parseIntersects(cursor: Cursor): FilterTree {
  const { start } = takeFunction(cursor);
  cursor.takeSymbol('(');
  const argument = parseArgument(cursor);
  const geography = parseGeography(cursor);
  const { srid, geometry } = parseWkt(cursor, geography);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'intersects', argument, srid: srid.value, geometry } as const;
  return cursor.add(node, start, { srid: srid.span });
}

function takeFunction(cursor: Cursor): Token {
  if (cursor.isKeyword(intersectsFunction)) return cursor.takeKeyword(intersectsFunction);
  const token = cursor.takeKeyword(shortFunction);
  const what = 'The function is written without its prefix.';
  cursor.warn(token, undocumentedForm(what, `Write ${intersectsFunction}.`));
  return token;
}

/** Takes `area=` or `Footprint=`; a comma instead of the sign is a form of two public clients. */
function parseArgument(cursor: Cursor): IntersectsNode['argument'] {
  const argument = words.find((word) => cursor.isKeyword(word));
  const hint = `Write ${intersectsFunction}(area=${form}).`;
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  cursor.takeKeyword(argument);
  if (!cursor.isSymbol('=') && !cursor.isSymbol(',')) {
    cursor.failUnexpected({ expected: '`=`', hint });
  }
  const sign = cursor.take();
  if (sign.raw === ',') {
    const what = 'A comma stands where the documentation has an equals sign.';
    cursor.warn(sign, undocumentedForm(what, `Write ${argument}=geography'…'.`));
  }
  return argument;
}

/** Takes `geography'…'`; the text must follow the word at once. */
function parseGeography(cursor: Cursor): Token {
  if (!cursor.isKeyword('geography')) cursor.failUnexpected({ expected: form });
  const word = cursor.takeKeyword('geography');
  const text = cursor.peek();
  if (text.kind !== 'text') cursor.failUnexpected({ expected: form });
  if (text.start > word.end) {
    const message = 'No blank may stand between `geography` and its text.';
    const span = { start: word.end, end: text.start };
    cursor.fail(span, { code: 'wrong-character', message, hint: 'Leave out the blank.' });
  }
  return cursor.take();
}
