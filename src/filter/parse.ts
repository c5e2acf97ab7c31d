/** Reads the text of a filter into a tree, by recursive descent along the grammar (facts, filters 1). */
import type { FilterTree } from '../domain/filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, type Span } from './finding.ts';
import { wrappingFault } from './hints/retired.ts';
import { named } from './hints/unexpected.ts';
import { filterLengthMax } from './limits.ts';
import { parseCondition } from './syntax/condition.ts';
import { type ConditionParts, Cursor } from './syntax/cursor.ts';

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
