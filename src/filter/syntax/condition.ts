/** Reads one condition: a comparison, a text function, an attribute's value, or a place. */
import type { FilterTree, TextFunction } from '../../domain/filter-tree.ts';
import { findField } from '../fields.ts';
import { functionFault, openSearchFault } from '../hints/retired.ts';
import { named } from '../hints/unexpected.ts';
import { attributePath, parseAttribute } from './attribute-condition.ts';
import type { Cursor } from './cursor.ts';
import { isIntersects, parseIntersects } from './intersects-condition.ts';
import { parseLiteral, parseLiterals } from './literal.ts';
import { parseOperator } from './operator.ts';
import { type Token, unquoted } from './tokenize.ts';

const textFunctions: readonly TextFunction[] = ['contains', 'startswith', 'endswith'];
const reserved = /^(?:and|or|not|in|eq|ne|lt|le|gt|ge|true|false|null)$/i;

const wanted = {
  code: 'missing-condition',
  message: 'A condition is missing here.',
  expected: "a condition such as Name eq '…', contains(Name,'…') or OData.CSC.Intersects(…)",
} as const;

export function parseCondition(cursor: Cursor): FilterTree {
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
