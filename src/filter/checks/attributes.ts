/** Checks conditions on attributes: name, kind, cast, and the type of the value. */
import type { AttributeKind, AttributeNode, Literal } from '../../domain/filter-tree.ts';
import { attributeKindOf, publishedAttributes } from '../attribute-names.ts';
import { nearestName } from '../hints/nearest-name.ts';
import { type Fault, named } from '../hints/unexpected.ts';
import { readFilterDate } from '../parse-date.ts';
import { showText } from '../syntax/show-literal.ts';
import { warnFineDate } from './dates.ts';
import type { Findings } from './findings.ts';

const publishedNames = publishedAttributes.map(({ name }) => name);

export function checkAttribute(findings: Findings, node: AttributeNode): void {
  checkKind(findings, node);
  checkCast(findings, node);
  checkOperator(findings, node);
  checkValue(findings, node);
}

/** New attributes appear without notice: an unknown name is no error. */
function checkKind(findings: Findings, node: AttributeNode): void {
  const { kind, name } = node;
  const published = attributeKindOf(name);
  if (published === undefined) {
    const nearest = nearestName(name, publishedNames);
    const message = `No attribute ${named(name)} is published. It may be new, or of a collection that publishes none.`;
    const hint = nearest === null ? {} : { hint: `Did you mean '${nearest}'?` };
    findings.warn(findings.spanOf(node, 'name'), { code: 'unknown-attribute', message, ...hint });
  }
  if (kind === 'Boolean') {
    const message =
      'Attributes of kind Boolean are in records, but filters by them are not documented.';
    findings.warn(findings.spanOf(node, 'kind'), { code: 'undocumented-attribute-kind', message });
  }
  if (published === undefined || published === kind) return;
  const message = `${name} is published as ${published}; as ${kind}, few products have it, or none.`;
  const hint = `Write OData.CSC.${published}Attribute.`;
  findings.warn(findings.spanOf(node, 'kind'), { code: 'attribute-kind', message, hint });
}

function checkCast(findings: Findings, node: AttributeNode): void {
  if (node.valueKind === node.kind) return;
  const message = `The attribute is asked for as ${node.kind}, but its value is read as ${node.valueKind}.`;
  const hint = `Write OData.CSC.${node.kind}Attribute/Value.`;
  findings.warn(findings.spanOf(node, 'valueKind'), { code: 'attribute-cast', message, hint });
}

function checkOperator(findings: Findings, node: AttributeNode): void {
  const { operator, valueKind } = node;
  const span = findings.spanOf(node, 'operator');
  if (operator === 'ne') {
    const message = "`ne` is not in the catalogue's documentation; it may be refused.";
    const hint = 'Write not (Attributes/…/any(… eq …)).';
    findings.warn(span, { code: 'undocumented-operator', message, hint });
  } else if (valueKind === 'Boolean' && operator !== 'eq') {
    const message = 'There is no order between true and false.';
    findings.warn(span, { code: 'odd-order', message, hint: 'Compare it with `eq`.' });
  }
}

function checkValue(findings: Findings, { valueKind, literal }: AttributeNode): void {
  const span = findings.spanOfObject(literal);
  if (valueKind === 'DateTimeOffset') warnFineDate(findings, span);
  if (fits(valueKind, literal)) return;
  const written = findings.written(span);
  const message = `The value is read as ${valueKind}, and ${named(written)} is ${typeWords[literal.type]}.`;
  const fault: Fault = { code: 'wrong-type', message, expected: samples[valueKind] };
  const hint = typeHint(valueKind, literal, written);
  findings.error(span, hint === null ? fault : { ...fault, hint });
}

const typeWords = {
  text: 'a text',
  number: 'a number',
  boolean: 'true or false',
  date: 'a date',
} as const;

const samples = {
  String: 'a text in single quotes',
  Double: 'a number',
  Integer: 'a number',
  DateTimeOffset: 'a date such as 2024-05-01T00:00:00.000Z',
  Boolean: 'true or false, without quotes',
} as const;

/** A date may stand in quotes (facts, filters 1). */
function fits(kind: AttributeKind, literal: Literal): boolean {
  switch (kind) {
    case 'String':
      return literal.type === 'text';
    case 'Double':
    case 'Integer':
      return literal.type === 'number';
    case 'Boolean':
      return literal.type === 'boolean';
    case 'DateTimeOffset':
      return (
        literal.type === 'date' ||
        (literal.type === 'text' && readFilterDate(literal.value) !== null)
      );
  }
}

function typeHint(kind: AttributeKind, literal: Literal, written: string): string | null {
  if (kind === 'String') return `Put it in single quotes: ${named(showText(written))}`;
  if (literal.type !== 'text' || kind === 'DateTimeOffset') return null;
  const numeric = literal.value.trim() !== '' && Number.isFinite(Number(literal.value));
  const bare = kind === 'Boolean' ? /^(?:true|false)$/i.test(literal.value) : numeric;
  return bare ? 'Leave out the quotes.' : null;
}
