/** Reads the operator of a comparison, and its value: a text, a number, a date, true or false. */
import type { ComparisonOperator, Literal } from '../domain/filter-tree.ts';
import { type Cursor, type Token, unquoted } from './cursor.ts';
import { findField } from './fields.ts';
import { named } from './finding.ts';
import { entryOf, undocumentedForm } from './hints.ts';
import { showText } from './print.ts';
import { readFilterDate } from './values.ts';

const operators: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];

/** Words that people write for an operator. */
const slips: Readonly<Record<string, string>> = {
  is: 'Write `eq`.',
  equals: 'Write `eq`.',
  equal: 'Write `eq`.',
  neq: 'Write `ne`.',
  lte: 'Write `le`.',
  gte: 'Write `ge`.',
  not: "Put `not` before the whole condition: not (Name eq '…').",
  like: "Write contains(Name,'…'), startswith(Name,'…') or endswith(Name,'…').",
  contains: "Write contains(Name,'…').",
  startswith: "Write startswith(Name,'…').",
  endswith: "Write endswith(Name,'…').",
  between: 'Write two conditions, with `ge` and `le`, joined by `and`.',
  has: 'Write `eq`.',
};

/** An operator, with where it stands, and its value; or `in` and its list. */
interface Operation {
  readonly span: Token;
  readonly operator: ComparisonOperator | 'in';
  readonly literals: readonly [Literal, ...Literal[]];
}

/** `isId`: a GUID may stand without quotes, as two public clients write it. */
export function parseOperation(cursor: Cursor, isId = false): Operation {
  const span = cursor.peek();
  const operator = cursor.takeOneOf([...operators, 'in']);
  if (operator === undefined) {
    return cursor.failUnexpected({
      code: 'missing-operator',
      message: 'A comparison is missing here.',
      expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
      hint: span.kind === 'word' ? entryOf(slips, span.raw.toLowerCase()) : null,
    });
  }
  if (operator !== 'in') return { span, operator, literals: [parseLiteral(cursor, isId)] };
  cursor.takeSymbol('(', { expected: "a list of values such as ('a','b')" });
  const literals: [Literal, ...Literal[]] = [parseLiteral(cursor, isId)];
  while (cursor.isSymbol(',')) {
    cursor.take();
    literals.push(parseLiteral(cursor, isId));
  }
  cursor.takeSymbol(')', { code: 'missing-parenthesis', expected: '`,` or `)`' });
  return { span, operator, literals };
}

const wanted = {
  code: 'missing-value',
  message: 'A value is missing here.',
  expected: 'a text in single quotes, a number, a date, true or false',
} as const;
const dateForm = 'a date such as 2024-05-01T00:00:00.000Z';

/** The form of ids. */
export const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function parseLiteral(cursor: Cursor, isId: boolean): Literal {
  const token = cursor.peek();
  const literal = isId && guid.test(token.raw) ? bareId(cursor) : literalOf(cursor, token);
  cursor.spans.set(literal, { start: token.start, end: token.end });
  return literal;
}

function bareId(cursor: Cursor): Literal {
  const token = cursor.take();
  const hint = `Write ${named(showText(token.raw))}.`;
  cursor.warn(token, undocumentedForm('The id has no quotes.', hint));
  return { type: 'text', value: token.raw };
}

function literalOf(cursor: Cursor, token: Token): Literal {
  const { kind, raw } = token;
  if (kind === 'text') return { type: 'text', value: unquoted(cursor.take().raw) };
  if (kind === 'number') {
    const value = Number(cursor.take().raw);
    if (Number.isFinite(value)) return { type: 'number', value };
    const message = `${named(raw)} is beyond the numbers that can be compared.`;
    return cursor.fail(token, { code: 'invalid-number', message });
  }
  if (kind === 'date') {
    const us = readFilterDate(cursor.take().raw);
    if (us !== null) return { type: 'date', us };
    const message = `${named(raw)} is not a date of the calendar, or not a time of the day.`;
    return cursor.fail(token, { code: 'invalid-date', message, expected: dateForm });
  }
  const truth = cursor.takeOneOf(['true', 'false']);
  if (truth !== undefined) return { type: 'boolean', value: truth === 'true' };
  if (kind === 'word') failWord(cursor, token);
  if (kind === 'odd' && /^[\w.:+-]{2,}$/.test(raw)) failNumeral(cursor, token);
  return cursor.failUnexpected(wanted);
}

/** Words that stand right before a quoted value in the language of the retired hub (OData 2). */
const prefixes = /^(?:datetime|datetimeoffset|guid|time|duration|binary|geometry|geography)$/i;

function failWord(cursor: Cursor, token: Token): never {
  const { raw, start, end } = token;
  const value = cursor.peekSecond();
  if (prefixes.test(raw) && value.kind === 'text' && value.start === end) {
    const bare = named(/^date/i.test(raw) ? unquoted(value.raw) : value.raw);
    const message = `\`${raw}'…'\` is a form of the retired hub.`;
    const hint = `Write the value alone: ${bare}`;
    cursor.fail({ start, end: value.end }, { code: 'retired-form', message, hint });
  }
  if (/^null$/i.test(raw)) {
    const message = 'null is not a value here: an absent value cannot be asked for.';
    cursor.fail(token, { ...wanted, message });
  }
  if (/^(?:and|or)$/i.test(raw)) cursor.failUnexpected(wanted);
  failUnquoted(cursor, token);
}

function failUnquoted(cursor: Cursor, token: Token): never {
  const fault = { message: `${named(token.raw)} is not a value.`, expected: wanted.expected };
  if (findField(token.raw) !== undefined) {
    const hint = 'A field can only be compared with a value.';
    cursor.fail(token, { code: 'not-comparable', ...fault, hint });
  }
  const hint = `Put texts in single quotes: ${named(showText(token.raw))}`;
  cursor.fail(token, { code: 'unquoted-text', ...fault, hint });
}

/** Digits that are neither a number nor a date: a slip in one of these, or an id without quotes. */
function failNumeral(cursor: Cursor, token: Token): never {
  if (/^\d{4}-\d\d?(?:-|$)/.test(token.raw)) {
    const message = `${named(token.raw)} is not a date that can be read.`;
    const hint =
      'A time has hours, minutes and seconds, then Z or an offset such as +02:00, or nothing.';
    cursor.fail(token, { code: 'invalid-date', message, expected: dateForm, hint });
  }
  if (/^[+-]?[\d.]+$/.test(token.raw)) {
    const message = `${named(token.raw)} is not a number.`;
    cursor.fail(token, { code: 'invalid-number', message, expected: 'a number such as 20 or 0.5' });
  }
  failUnquoted(cursor, token);
}
