/** Reads a value: a text, a number, a date, true or false. */
import type { ComparisonOperator, Literal } from '../domain/filter-tree.ts';
import { type Cursor, named, type Token, undocumentedForm, unquoted } from './cursor.ts';
import { findField } from './fields.ts';
import { showText } from './print.ts';
import { readFilterDate } from './values.ts';

const wanted = {
  code: 'missing-value',
  message: 'A value is missing here.',
  expected: 'a text in single quotes, a number, a date, true or false',
} as const;

/** Words that stand right before a quoted value in the language of the retired hub (OData 2). */
const prefixes = /^(?:datetime|datetimeoffset|guid|time|duration|binary|geometry|geography)$/i;

const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** `isId`: a GUID may stand without quotes, as two public clients write it. */
export function parseLiteral(cursor: Cursor, { isId = false } = {}): Literal {
  const token = cursor.peek();
  const literal = isId && guid.test(token.raw) ? bareId(cursor) : literalOf(cursor, token);
  cursor.spans.set(literal, { start: token.start, end: token.end });
  return literal;
}

/** Reads the list of values after `in`, with its parentheses. */
export function parseLiterals(cursor: Cursor, options?: { isId: boolean }): Literal[] {
  cursor.takeSymbol('(', { expected: "a list of values such as ('a','b')" });
  const literals: Literal[] = [parseLiteral(cursor, options)];
  while (cursor.isSymbol(',')) {
    cursor.take();
    literals.push(parseLiteral(cursor, options));
  }
  cursor.takeSymbol(')', { code: 'missing-parenthesis', expected: '`,` or `)`' });
  return literals;
}

function bareId(cursor: Cursor): Literal {
  const token = cursor.take();
  const hint = `Write ${named(showText(token.raw))}.`;
  cursor.warn(token, undocumentedForm('The id has no quotes.', hint));
  return { type: 'text', value: token.raw };
}

function literalOf(cursor: Cursor, token: Token): Literal {
  if (token.kind === 'text') return { type: 'text', value: unquoted(cursor.take().raw) };
  if (token.kind === 'number') return { type: 'number', value: numberOf(cursor) };
  if (token.kind === 'date') return { type: 'date', us: dateOf(cursor) };
  for (const value of [true, false]) {
    if (!cursor.isKeyword(String(value))) continue;
    cursor.takeKeyword(String(value));
    return { type: 'boolean', value };
  }
  if (token.kind === 'word') failWord(cursor, token);
  if (token.kind === 'odd' && /^[\w.:+-]{2,}$/.test(token.raw)) failNumeral(cursor, token);
  return cursor.failUnexpected(wanted);
}

function numberOf(cursor: Cursor): number {
  const token = cursor.take();
  const value = Number(token.raw);
  if (Number.isFinite(value)) return value;
  const message = `${named(token.raw)} is beyond the numbers that can be compared.`;
  return cursor.fail(token, { code: 'invalid-number', message });
}

function dateOf(cursor: Cursor): number {
  const token = cursor.take();
  const us = readFilterDate(token.raw);
  if (us !== null) return us;
  const message = `${named(token.raw)} is not a date of the calendar, or not a time of the day.`;
  return cursor.fail(token, { code: 'invalid-date', message, expected: dateForm });
}

const dateForm = 'a date such as 2024-05-01T00:00:00.000Z';

function failWord(cursor: Cursor, token: Token): never {
  const value = cursor.peekSecond();
  if (prefixes.test(token.raw) && value.kind === 'text' && value.start === token.end) {
    const bare = named(/^date/i.test(token.raw) ? unquoted(value.raw) : value.raw);
    cursor.fail(
      { start: token.start, end: value.end },
      {
        code: 'retired-form',
        message: `\`${token.raw}'…'\` is a form of the retired hub.`,
        hint: `Write the value alone: ${bare}`,
      },
    );
  }
  if (/^null$/i.test(token.raw)) {
    const message = 'null is not a value here: an absent value cannot be asked for.';
    cursor.fail(token, { code: 'missing-value', message, expected: wanted.expected });
  }
  if (/^(?:and|or)$/i.test(token.raw)) cursor.failUnexpected(wanted);
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

const operators: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];

const wantedOfOperator = {
  code: 'missing-operator',
  message: 'A comparison is missing here.',
  expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
} as const;

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

export function parseOperator(cursor: Cursor): ComparisonOperator {
  for (const operator of operators) {
    if (!cursor.isKeyword(operator)) continue;
    cursor.takeKeyword(operator);
    return operator;
  }
  const { kind, raw } = cursor.peek();
  const hint = kind === 'word' ? slips[raw.toLowerCase()] : undefined;
  return cursor.failUnexpected(
    hint === undefined ? wantedOfOperator : { ...wantedOfOperator, hint },
  );
}
