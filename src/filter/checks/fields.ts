/** Checks the fields of comparisons and text functions, and the types of their values. */
import type {
  AttributeKind,
  ComparisonNode,
  InNode,
  Literal,
  TextNode,
} from '../../domain/filter-tree.ts';
import type { PublishedAttribute } from '../attribute-names.ts';
import { type Field, fieldsOf, findField, incomparableFields } from '../fields.ts';
import { counterpartHint, recordOnlyFields, unknownFieldHint } from '../hints/fields.ts';
import { attributeForm } from '../hints/retired.ts';
import {
  type Fault,
  insteadOfIn,
  named,
  undocumentedForm,
  undocumentedOperator,
} from '../hints/unexpected.ts';
import { showText } from '../syntax/show-literal.ts';
import type { Findings } from './findings.ts';
import { warnInexactDate } from './precision.ts';
import { checkOperator, checkType, fits, samples, typeWords, valueTypes } from './values.ts';

const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function checkComparison(findings: Findings, node: ComparisonNode | InNode): void {
  const span = findings.spanOf(node, 'operator');
  if (node.node === 'in') {
    findings.warn(span, undocumentedOperator('in', insteadOfIn));
  }
  const field = checkField(findings, node);
  if (node.node === 'comparison') {
    const { name: subject = node.field, type = 'text' } = field ?? {};
    const insteadOfNe = 'Write not (… eq …).';
    checkOperator(findings, span, node.operator, { subject, type, insteadOfNe });
  }
  if (field === null) return;
  const literals = node.node === 'in' ? node.literals : [node.literal];
  for (const literal of literals) checkLiteral(findings, field, literal);
}

type FieldNode = ComparisonNode | InNode | TextNode;

/** Characters of a value that a hint repeats. */
const valueShownMax = 200;

/** `collected`: a collection is named beside the function. */
export function checkTextFunction(findings: Findings, node: TextNode, collected: boolean): void {
  const field = checkField(findings, node);
  if (field === null) return;
  const span = findings.spanOf(node, 'field');
  if (field.type === 'guid') {
    const hint = "Compare the whole id: Id eq '…'.";
    findings.warn(span, undocumentedForm(`${node.function} is called on an id.`, hint));
    return;
  }
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
function checkField(findings: Findings, node: FieldNode): Field | null {
  const field = findField(node.field);
  if (field?.entities.includes(findings.entity) === true) return field;
  const span = findings.spanOf(node, 'field');
  findings.error(span, fieldFault(findings, node, field));
  return null;
}

function fieldFault(findings: Findings, node: FieldNode, field: Field | undefined): Fault {
  const { entity } = findings;
  const { field: name } = node;
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
  const expected = names.join(', ');
  if (recordOnlyFields.has(name.toLowerCase())) {
    const message = `${named(name)} is in the records, but filters by it are not documented.`;
    return { code: 'undocumented-field', message, expected };
  }
  const message = `${entity} have no field ${named(name)}.`;
  const fault = { code: 'unknown-field', message, expected } as const;
  const conditionOn = (attribute: PublishedAttribute) => onAttribute(findings, node, attribute);
  return withHint(fault, unknownFieldHint(entity, name, conditionOn));
}

/** A condition on a field as one on an attribute, with the operator and the values that the user wrote. */
function onAttribute(
  findings: Findings,
  node: FieldNode,
  { name, kind }: PublishedAttribute,
): string {
  if (node.node === 'text') return attributeForm(name, kind, kind === 'String' ? "'…'" : '…');
  const operator = node.node === 'in' ? 'eq' : node.operator;
  const literals = node.node === 'in' ? node.literals : [node.literal];
  const conditions = literals.map((literal) =>
    attributeForm(name, kind, shownValue(findings, literal, kind), operator),
  );
  return conditions.length === 1 ? conditions.join('') : `(${conditions.join(' or ')})`;
}

/** A value as it is written for an attribute of the kind; three dots for one that is too long, or cannot be one. */
function shownValue(findings: Findings, literal: Literal, kind: AttributeKind): string {
  const written = findings.written(findings.spanOfObject(literal));
  if (written.length > valueShownMax) return kind === 'String' ? "'…'" : '…';
  if (fits(valueTypes[kind], literal)) return written;
  if (kind === 'String') return showText(written);
  const isNumber = literal.type === 'text' && /^-?\d+(?:\.\d+)?$/.test(literal.value);
  return isNumber && valueTypes[kind] === 'number' ? literal.value : '…';
}

function withHint(fault: Fault, hint: string | null): Fault {
  return hint === null ? fault : { ...fault, hint };
}

function checkLiteral(findings: Findings, field: Field, literal: Literal): void {
  const { type } = field;
  if (!checkType(findings, field, literal)) return;
  if (type === 'date') warnInexactDate(findings, literal);
  if (type !== 'guid' || literal.type !== 'text' || guid.test(literal.value)) return;
  const span = findings.spanOfObject(literal);
  const message = `${named(findings.written(span))} is not the id of a product (a GUID): nothing will match.`;
  findings.warn(span, { code: 'odd-id', message, expected: samples.guid });
}
