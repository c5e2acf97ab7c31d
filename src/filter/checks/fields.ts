/** Checks the fields of comparisons and text functions, and the types of their values. */
import type { ComparisonNode, InNode, Literal, TextNode } from '../../domain/filter-tree.ts';
import { type Field, fieldsOf, findField, incomparableFields } from '../fields.ts';
import { counterpartHint, unknownFieldHint } from '../hints/fields.ts';
import { attributeForm } from '../hints/retired.ts';
import { type Fault, named } from '../hints/unexpected.ts';
import { readFilterDate } from '../parse-date.ts';
import { showText } from '../syntax/show-literal.ts';
import { warnFineDate } from './dates.ts';
import type { Findings } from './findings.ts';

const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function checkComparison(findings: Findings, node: ComparisonNode | InNode): void {
  const operatorSpan = findings.spanOf(node, 'operator');
  const operator = node.node === 'in' ? 'in' : node.operator;
  if (operator === 'in' || operator === 'ne') {
    const message = `\`${operator}\` is not in the catalogue's documentation; it may be refused.`;
    const hint =
      operator === 'ne' ? 'Write not (… eq …).' : 'Write comparisons with `eq`, joined by `or`.';
    findings.warn(operatorSpan, { code: 'undocumented-operator', message, hint });
  }
  const field = checkField(findings, node);
  if (field === null) return;
  if (field.type === 'boolean' && !['eq', 'ne', 'in'].includes(operator)) {
    const message = `${field.name} is true or false; there is no order between them.`;
    findings.warn(operatorSpan, { code: 'odd-order', message, hint: 'Compare it with `eq`.' });
  }
  const literals = node.node === 'in' ? node.literals : [node.literal];
  for (const literal of literals) checkLiteral(findings, field, literal);
}

/** `collected`: a collection is named beside the function. */
export function checkTextFunction(findings: Findings, node: TextNode, collected: boolean): void {
  const field = checkField(findings, node);
  if (field === null) return;
  const span = findings.spanOf(node, 'field');
  if (field.type !== 'text') {
    const message = `${node.function} works on texts; ${field.name} is ${typeWords[field.type]}.`;
    findings.error(span, { code: 'wrong-type', message, expected: 'Name' });
    return;
  }
  if (field.name !== 'Name' || collected) return;
  const message =
    'A search in names is slow without the collection beside it; the documentation asks for it.';
  const hint = `Write Collection/Name eq '…' and ${node.function}(Name,'…').`;
  findings.warn(findings.spanOfObject(node), { code: 'name-without-collection', message, hint });
}

/** The field of a condition; null, with an error noted, when the entity has none of that name. */
function checkField(findings: Findings, node: { readonly field: string }): Field | null {
  const field = findField(node.field);
  if (field?.entities.includes(findings.entity) === true) return field;
  const span = findings.spanOf(node, 'field');
  findings.error(span, fieldFault(findings, node.field, field));
  return null;
}

function fieldFault({ entity }: Findings, name: string, field: Field | undefined): Fault {
  if (field !== undefined) {
    const message = `${field.name} is a field of ${field.entities[0]}, not of ${entity}.`;
    return withHint({ code: 'field-of-other-entity', message }, counterpartHint(field.name));
  }
  const special = incomparableFields.find((one) => one.toLowerCase() === name.toLowerCase());
  if (special !== undefined) {
    const form =
      special === 'Footprint'
        ? "OData.CSC.Intersects(area=geography'SRID=4326;…')"
        : attributeForm('productType', 'String', "'…'");
    const message = `${special} cannot be compared.`;
    return { code: 'not-comparable', message, hint: `Write ${form}` };
  }
  const names = fieldsOf(entity).map((one) => one.name);
  const message = `${entity} have no field ${named(name)}.`;
  const fault = { code: 'unknown-field', message, expected: names.join(', ') } as const;
  return withHint(fault, unknownFieldHint(entity, name));
}

function withHint(fault: Fault, hint: string | null): Fault {
  return hint === null ? fault : { ...fault, hint };
}

function checkLiteral(findings: Findings, field: Field, literal: Literal): void {
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  if (!fits(field, literal)) {
    const message = `${field.name} is ${typeWords[field.type]}, and ${named(written)} is not.`;
    const fault: Fault = { code: 'wrong-type', message, expected: samples[field.type] };
    findings.error(span, withHint(fault, typeHint(field, literal, written)));
    return;
  }
  if (field.type === 'date') warnFineDate(findings, span);
  if (field.type === 'guid' && literal.type === 'text' && !guid.test(literal.value)) {
    const message = `${named(written)} is not the id of a product (a GUID): nothing will match.`;
    findings.warn(span, { code: 'odd-id', message, expected: samples.guid });
  }
}

const typeWords = {
  text: 'a text',
  guid: 'an id',
  date: 'a date',
  boolean: 'true or false',
} as const;

const samples = {
  text: 'a text in single quotes',
  guid: "an id such as '79d7807b-66e5-41d2-a586-1628eb82c3e0'",
  date: 'a date such as 2024-05-01T00:00:00.000Z',
  boolean: 'true or false, without quotes',
} as const;

/** A date may stand in quotes (facts, filters 1). */
function fits(field: Field, literal: Literal): boolean {
  switch (field.type) {
    case 'text':
    case 'guid':
      return literal.type === 'text';
    case 'boolean':
      return literal.type === 'boolean';
    case 'date':
      return (
        literal.type === 'date' ||
        (literal.type === 'text' && readFilterDate(literal.value) !== null)
      );
  }
}

function typeHint(field: Field, literal: Literal, written: string): string | null {
  if (field.type === 'text' || field.type === 'guid') {
    return `Put texts in single quotes: ${named(showText(written))}`;
  }
  const bare = literal.type === 'text' && /^(?:true|false)$/i.test(literal.value);
  return field.type === 'boolean' && bare ? 'Leave out the quotes.' : null;
}
