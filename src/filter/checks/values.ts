/** Checks values and operators by the type of what they are compared with: a field or an attribute. */
import type { ComparisonOperator, Literal } from '../../domain/filter-tree.ts';
import type { FieldType } from '../fields.ts';
import type { Span } from '../finding.ts';
import { type Fault, named } from '../hints/unexpected.ts';
import { readFilterDate } from '../parse-date.ts';
import { showText } from '../syntax/show-literal.ts';
import type { Findings } from './findings.ts';

export type ValueType = FieldType | 'number';

/** What a value of each type is. */
export const typeWords: Readonly<Record<ValueType, string>> = {
  text: 'a text',
  guid: 'an id',
  number: 'a number',
  date: 'a date',
  boolean: 'true or false',
};

export const samples: Readonly<Record<ValueType, string>> = {
  text: 'a text in single quotes',
  guid: "an id such as '79d7807b-66e5-41d2-a586-1628eb82c3e0'",
  number: 'a number',
  date: 'a date such as 2024-05-01T00:00:00.000Z',
  boolean: 'true or false, without quotes',
};

/** Notes an error, said by `messageOf`, for a literal of another type; true when it is of this one. */
export function checkType(
  findings: Findings,
  type: ValueType,
  literal: Literal,
  messageOf: (written: string) => string,
): boolean {
  if (fits(type, literal)) return true;
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  const fault: Fault = { code: 'wrong-type', message: messageOf(named(written)) };
  const hint = typeHint(type, literal, written);
  const expected = samples[type];
  findings.error(span, { ...fault, expected, ...(hint === null ? {} : { hint }) });
  return false;
}

/** `insteadOfNe`: what to write for it, which is not documented. */
export function checkOperator(
  findings: Findings,
  span: Span,
  operator: ComparisonOperator,
  { subject, type, insteadOfNe }: { subject: string; type: ValueType; insteadOfNe: string },
): void {
  if (operator === 'ne') {
    warnUndocumented(findings, span, 'ne', insteadOfNe);
  } else if (type === 'boolean' && operator !== 'eq') {
    const message = `${subject} is true or false; there is no order between them.`;
    findings.warn(span, { code: 'odd-order', message, hint: 'Compare it with `eq`.' });
  }
}

export function warnUndocumented(
  findings: Findings,
  span: Span,
  operator: 'ne' | 'in',
  hint: string,
): void {
  const message = `\`${operator}\` is not in the catalogue's documentation; it may be refused.`;
  findings.warn(span, { code: 'undocumented-operator', message, hint });
}

/** A date may stand in quotes (facts, filters 1). */
function fits(type: ValueType, literal: Literal): boolean {
  if (type === 'guid') return literal.type === 'text';
  if (type !== 'date' || literal.type !== 'text') return literal.type === type;
  return readFilterDate(literal.value) !== null;
}

function typeHint(type: ValueType, literal: Literal, written: string): string | null {
  if (type === 'text' || type === 'guid') {
    return `Put texts in single quotes: ${named(showText(written))}`;
  }
  if (literal.type !== 'text' || type === 'date') return null;
  const numeric = literal.value.trim() !== '' && Number.isFinite(Number(literal.value));
  const bare = type === 'boolean' ? /^(?:true|false)$/i.test(literal.value) : numeric;
  return bare ? 'Leave out the quotes.' : null;
}
