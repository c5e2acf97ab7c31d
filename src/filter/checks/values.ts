/** Checks values and operators by the type of what they are compared with: a field or an attribute. */
import type { AttributeKind, ComparisonOperator, Literal } from '../../domain/filter-tree.ts';
import { asTruth } from '../attribute-value.ts';
import type { FieldType } from '../fields.ts';
import type { Span } from '../finding.ts';
import { type Fault, named, undocumentedOperator } from '../hints/unexpected.ts';
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

/** Notes a finding for a field's literal of another type; true when it is of this one. */
export function checkType(
  findings: Findings,
  { name, type }: { name: string; type: FieldType },
  literal: Literal,
): boolean {
  if (fits(type, literal)) return true;
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  const message = `${name} is ${typeWords[type]}, and ${named(written)} is not.`;
  if (type === 'boolean' && literal.type === 'text' && asTruth(literal.value) !== null) {
    const accepted = `${message} Accepted here; the catalogue's answer is not known.`;
    findings.warn(span, { code: 'wrong-type', message: accepted, hint: 'Remove the quotes.' });
    return false;
  }
  const isText = type === 'text' || type === 'guid';
  const hint = isText ? { hint: `Put texts in single quotes: ${named(showText(written))}` } : {};
  const fault: Fault = { code: 'wrong-type', message, expected: samples[type], ...hint };
  findings.error(span, fault);
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
    findings.warn(span, undocumentedOperator('ne', insteadOfNe));
  } else if (type === 'boolean' && operator !== 'eq') {
    const message = `${subject} is true or false; there is no order between them.`;
    findings.warn(span, { code: 'odd-order', message, hint: 'Compare it with `eq`.' });
  }
}

/** What the values of an attribute are. */
export const valueTypes: Readonly<Record<AttributeKind, ValueType>> = {
  String: 'text',
  Double: 'number',
  Integer: 'number',
  DateTimeOffset: 'date',
  Boolean: 'boolean',
};

/** A date may stand in quotes (facts, filters 1). */
export function fits(type: ValueType, literal: Literal): boolean {
  if (type === 'guid') return literal.type === 'text';
  if (type !== 'date' || literal.type !== 'text') return literal.type === type;
  return readFilterDate(literal.value) !== null;
}
