/** Checks conditions on attributes: name, kind, cast, and the type of the value. */
import type { AttributeKind, AttributeNode } from '../../domain/filter-tree.ts';
import { attributeKindOf, publishedAttributes } from '../attribute-names.ts';
import { nearestName } from '../hints/nearest-name.ts';
import { named } from '../hints/unexpected.ts';
import type { Findings } from './findings.ts';
import { warnInexactDate, warnInexactNumber } from './precision.ts';
import { checkOperator, checkType, typeWords, type ValueType } from './values.ts';

const publishedNames = publishedAttributes.map(({ name }) => name);

export function checkAttribute(findings: Findings, node: AttributeNode): void {
  checkKind(findings, node);
  checkCast(findings, node);
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

function checkValue(findings: Findings, node: AttributeNode): void {
  const { valueKind, literal, operator } = node;
  const type = valueTypes[valueKind];
  checkOperator(findings, findings.spanOf(node, 'operator'), operator, {
    subject: 'The value',
    type,
    insteadOfNe: 'Write not (Attributes/…/any(… eq …)).',
  });
  const isOfType = checkType(
    findings,
    type,
    literal,
    (written) => `The value is read as ${valueKind}, and ${written} is ${typeWords[literal.type]}.`,
  );
  if (!isOfType) return;
  if (type === 'date') warnInexactDate(findings, literal);
  else warnInexactNumber(findings, literal);
}

const valueTypes: Readonly<Record<AttributeKind, ValueType>> = {
  String: 'text',
  Double: 'number',
  Integer: 'number',
  DateTimeOffset: 'date',
  Boolean: 'boolean',
};
