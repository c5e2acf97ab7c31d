/** Checks conditions on attributes: name, kinds, and the type of the value. */
import type { AttributeKind, AttributeNode } from '../../domain/filter-tree.ts';
import { attributeKindOf, publishedAttributes } from '../attribute-names.ts';
import { nearestName } from '../hints/nearest-name.ts';
import { named } from '../hints/unexpected.ts';
import { showText } from '../syntax/show-literal.ts';
import type { Findings } from './findings.ts';
import { warnInexactDate, warnInexactNumber } from './precision.ts';
import { checkOperator, fits, typeWords, valueTypes } from './values.ts';

const publishedNames = publishedAttributes.map(({ name }) => name);

/** Notes warnings alone: the value decides how it is compared, whatever kinds are named (decision 35). */
export function checkAttribute(findings: Findings, node: AttributeNode): void {
  const published = attributeKindOf(node.name);
  if (published === undefined) warnUnknown(findings, node);
  warnKinds(findings, node, published);
  checkValue(findings, node, published);
}

/** New attributes appear without notice: an unknown name is no error. */
function warnUnknown(findings: Findings, node: AttributeNode): void {
  const nearest = nearestName(node.name, publishedNames);
  const message = `No attribute ${named(node.name)} is published. It may be new, or of a collection that publishes none.`;
  const hint = nearest === null ? {} : { hint: `Did you mean '${nearest}'?` };
  findings.warn(findings.spanOf(node, 'name'), { code: 'unknown-attribute', message, ...hint });
}

function warnKinds(
  findings: Findings,
  node: AttributeNode,
  published: AttributeKind | undefined,
): void {
  const { kind, name, valueKind, literal } = node;
  if (kind === 'Boolean') {
    const message =
      'Attributes of kind Boolean are in records, but filters by them are not documented.';
    findings.warn(findings.spanOf(node, 'kind'), { code: 'undocumented-attribute-kind', message });
  }
  if (published !== undefined && published !== kind && published !== valueKind) {
    const message = `${name} is published as ${published}, not as ${kind}. Accepted here; the catalogue may find nothing.`;
    const hint = `Write OData.CSC.${published}Attribute in both places.`;
    findings.warn(findings.spanOf(node, 'kind'), { code: 'attribute-kind', message, hint });
    return;
  }
  if (valueKind === kind) return;
  const message = `The condition names two kinds, ${kind} and ${valueKind}. The value decides: it is compared as ${typeWords[literal.type]}.`;
  // No hint: users report such filters to work where one kind in both places did not (sentinelsat #583, eodag #2098).
  findings.warn(findings.spanOf(node, 'valueKind'), { code: 'attribute-cast', message });
}

function checkValue(
  findings: Findings,
  node: AttributeNode,
  published: AttributeKind | undefined,
): void {
  const { kind, name, valueKind, literal, operator } = node;
  checkOperator(findings, findings.spanOf(node, 'operator'), operator, {
    subject: 'The value',
    type: literal.type,
    insteadOfNe: 'Write not (Attributes/…/any(… eq …)).',
  });
  const types = (published === undefined ? [kind, valueKind] : [published]).map(
    (one) => valueTypes[one],
  );
  if (types.some((type) => fits(type, literal))) {
    if (types.includes('date')) warnInexactDate(findings, literal);
    else warnInexactNumber(findings, literal);
    return;
  }
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  const known =
    published === undefined
      ? `the condition names ${kind}`
      : `${name} is published as ${published}`;
  const message = `${named(written)} is ${typeWords[literal.type]}, and ${known}: it may match nothing.`;
  const hint = quotesHint(node, published, written);
  findings.warn(span, { code: 'attribute-value', message, ...(hint === null ? {} : { hint }) });
}

/** A public client lost all its results when it put a number in quotes: only a published String gets that hint. */
function quotesHint(
  { literal }: AttributeNode,
  published: AttributeKind | undefined,
  written: string,
): string | null {
  if (literal.type !== 'text') {
    return published === 'String'
      ? `Put texts in single quotes: ${named(showText(written))}`
      : null;
  }
  const isNumber = literal.value.trim() !== '' && Number.isFinite(Number(literal.value));
  return isNumber || /^(?:true|false)$/.test(literal.value) ? 'Remove the quotes.' : null;
}
