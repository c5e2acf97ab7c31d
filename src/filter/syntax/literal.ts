/** Reads a value: a text, a number, a date, true or false. */
import type { Literal } from '../../domain/filter-tree.ts';
import { findField } from '../fields.ts';
import { named } from '../hints/unexpected.ts';
import { readFilterDate } from '../parse-date.ts';
import type { Cursor } from './cursor.ts';
import { showText } from './show-literal.ts';
import { type Token, unquoted } from './tokenize.ts';

const wanted = {
  code: 'missing-value',
  message: 'A value is missing here.',
  expected: 'a text in single quotes, a number, a date, true or false',
} as const;

/** Words that stand right before a quoted value in the language of the retired hub (OData 2). */
const prefixes = /^(?:datetime|datetimeoffset|guid|time|duration|binary|geometry|geography)$/i;

export function parseLiteral(cursor: Cursor): Literal {
  const token = cursor.peek();
  const literal = literalOf(cursor, token);
  cursor.spans.set(literal, { start: token.start, end: token.end });
  return literal;
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
  const message = `${named(token.raw)} is not a value.`;
  const hint =
    findField(token.raw) === undefined
      ? `Put texts in single quotes: ${named(showText(token.raw))}`
      : 'A field can only be compared with a value.';
  cursor.fail(token, { code: 'unquoted-text', message, expected: wanted.expected, hint });
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
