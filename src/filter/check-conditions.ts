/** Checks the comparisons, string functions and attribute conditions of a filter. */

import { readDateUs } from '../core/terms/dates.ts';
import { likelyNames, nearestName } from '../core/terms/text.ts';
import { type ConditionParts, dateLiteral, guid } from './cursor.ts';
import {
  attributeKindOf,
  type Field,
  type FieldType,
  fieldsOf,
  findField,
  type PublishedAttribute,
  publishedAttributes,
} from './fields.ts';
import type {
  AttributeKind,
  AttributeNode,
  ComparisonNode,
  Entity,
  InNode,
  Literal,
  TextNode,
} from './filter-tree.ts';
import { type Fault, type FilterFinding, findingAt, quoted, type Span } from './finding.ts';
import { newEffort } from './geometry/validity.ts';
import { undocumentedForm, undocumentedOperator, unknownFieldHint } from './hints.ts';
import { publishedCollections } from './missions.ts';
import type { ParsedFilter } from './parse.ts';
import { attributeForm, showText } from './print.ts';
import { groupIn, knownProductTypes } from './product-types.ts';
import { asTruth } from './values.ts';

/** Collects the findings of a check, and returns the span of each part of the filter. */
export class Findings {
  readonly entity: Entity;
  readonly found: FilterFinding[] = [];
  /** Shared by all geometries of the filter. */
  readonly effort = newEffort();
  readonly #text: string;
  readonly #parsed: ParsedFilter;

  constructor(text: string, parsed: ParsedFilter, entity: Entity) {
    this.entity = entity;
    this.#text = text;
    this.#parsed = parsed;
  }

  error(span: Span, fault: Fault): void {
    this.found.push(findingAt('error', span, fault));
  }

  warn(span: Span, fault: Fault): void {
    this.found.push(findingAt('warning', span, fault));
  }

  /** Span of a node, literal, geometry, ring or position, or of a part of a condition. */
  spanOf(object: object, part?: keyof ConditionParts): Span {
    const own = part === undefined ? undefined : this.#parsed.parts.get(object)?.[part];
    return own ?? this.#parsed.spans.get(object) ?? { start: 0, end: this.#text.length };
  }

  /** A literal as written. */
  written(literal: Literal): string {
    const { start, end } = this.spanOf(literal);
    return this.#text.slice(start, end);
  }
}

type ValueType = FieldType | 'number';

/** Phrases for each type in messages. */
const typePhrase: Readonly<Record<ValueType, { readonly is: string; readonly sample: string }>> = {
  text: { is: 'a string', sample: 'a string in single quotes' },
  guid: { is: 'a GUID', sample: "a GUID such as '79d7807b-66e5-41d2-a586-1628eb82c3e0'" },
  number: { is: 'a number', sample: 'a number' },
  date: { is: 'a date', sample: 'a date such as 2024-05-01T00:00:00.000Z' },
  boolean: { is: 'a Boolean', sample: 'true or false, without quotes' },
};

/** Literal type for each attribute type. */
const valueTypes: Readonly<Record<AttributeKind, ValueType>> = {
  String: 'text',
  Double: 'number',
  Integer: 'number',
  DateTimeOffset: 'date',
  Boolean: 'boolean',
};

/** Compares types; a date may be quoted, and has the same form then (facts, filters 1). */
function fits(type: ValueType, literal: Literal): boolean {
  if (type === 'guid') return literal.type === 'text';
  if (type !== 'date' || literal.type !== 'text') return literal.type === type;
  return dateLiteral.test(literal.value) && readDateUs(literal.value) !== null;
}

type FieldNode = ComparisonNode | InNode | TextNode;

export function checkComparison(findings: Findings, node: ComparisonNode | InNode): void {
  const literals = literalsOf(node);
  if (node.node === 'in') {
    findings.warn(findings.spanOf(node, 'operator'), undocumentedOperator('in'));
  }
  const field = checkField(findings, node);
  if (node.node === 'comparison') warnNotEqual(findings, node);
  if (field !== null) for (const literal of literals) checkLiteral(findings, field, literal);
  if (node.field === 'Collection/Name') checkCollections(findings, literals);
}

function literalsOf(node: ComparisonNode | InNode): readonly Literal[] {
  return node.node === 'in' ? node.literals : [node.literal];
}

/** `hasCollection`: the function is joined by `and` with a condition on the collection. */
export function checkTextFunction(
  findings: Findings,
  node: TextNode,
  hasCollection: boolean,
): void {
  const field = checkField(findings, node);
  if (field === null) return;
  const span = findings.spanOf(node, 'field');
  if (field.type === 'guid') {
    const hint = "Compare the complete id: Id eq '…'.";
    findings.warn(span, undocumentedForm(`${node.function} is applied to an id.`, hint));
  } else if (field.type !== 'text') {
    const message = `${node.function} needs a string property; ${field.name} is ${typePhrase[field.type].is}.`;
    findings.error(span, { code: 'wrong-type', message, expected: 'Name' });
  } else if (field.name === 'Name' && !hasCollection) {
    const message =
      'A search in names is slow without a collection; the catalogue documentation asks for one.';
    const hint = `Write Collection/Name eq '…' and ${node.function}(Name,'…').`;
    findings.warn(findings.spanOf(node), { code: 'name-without-collection', message, hint });
  }
}

/** Returns the property of a condition; null, after reporting an error, if the entity does not have it. */
function checkField(findings: Findings, node: FieldNode): Field | null {
  const field = findField(node.field);
  if (field?.entities.includes(findings.entity) === true) return field;
  findings.error(findings.spanOf(node, 'field'), fieldFault(findings, node, field));
  return null;
}

function fieldFault(findings: Findings, node: FieldNode, field: Field | undefined): Fault {
  const { entity } = findings;
  const { field: name } = node;
  if (field !== undefined) {
    const message = `${field.name} is a property of ${field.entities[0]}, not of ${entity}.`;
    return { code: 'field-of-other-entity', message };
  }
  const expected = fieldsOf(entity)
    .map((one) => one.name)
    .join(', ');
  const message = `Filters for ${entity} have no property ${quoted(name)}.`;
  const hint = unknownFieldHint(entity, name, (attribute) =>
    onAttribute(findings, node, attribute),
  );
  return { code: 'unknown-field', message, expected, hint };
}

/** Rewrites a comparison of a property as one of an attribute, with the literal if its type fits. */
function onAttribute(findings: Findings, node: FieldNode, { name, kind }: PublishedAttribute) {
  const any = kind === 'String' ? "'…'" : '…';
  if (node.node !== 'comparison') return attributeForm(name, kind, any);
  const written = findings.written(node.literal);
  const isShown = fits(valueTypes[kind], node.literal) && written.length <= valueShownMax;
  return attributeForm(name, kind, isShown ? written : any, node.operator);
}

/** Maximum length of a literal that a hint repeats. */
const valueShownMax = 200;

function warnNotEqual(findings: Findings, node: ComparisonNode | AttributeNode): void {
  if (node.operator !== 'ne') return;
  findings.warn(findings.spanOf(node, 'operator'), undocumentedOperator('ne'));
}

function checkLiteral(findings: Findings, { name, type }: Field, literal: Literal): void {
  const span = findings.spanOf(literal);
  const written = findings.written(literal);
  const expected = typePhrase[type].sample;
  if (!fits(type, literal)) {
    const message = `${name} is ${typePhrase[type].is}; ${quoted(written)} is not.`;
    if (type === 'boolean' && literal.type === 'text' && asTruth(literal.value) !== null) {
      findings.warn(span, undocumentedForm(message, 'Remove the quotes.'));
      return;
    }
    const isText = type === 'text' || type === 'guid';
    const hint = isText ? `Put strings in single quotes: ${quoted(showText(written))}` : null;
    findings.error(span, { code: 'wrong-type', message, expected, hint });
  } else if (type === 'guid' && literal.type === 'text' && !guid.test(literal.value)) {
    const message = `${quoted(written)} is not a product id (GUID), so nothing matches.`;
    findings.warn(span, { code: 'odd-id', message, expected });
  }
}

/** Warns about unknown collections. */
function checkCollections(findings: Findings, literals: readonly Literal[]): void {
  for (const literal of literals) {
    if (literal.type !== 'text' || publishedCollections.includes(literal.value)) continue;
    // Expands `S2` and `s-5p` to the names of the catalogue.
    const spelledOut = literal.value.replace(/^s-?(?=\dp?$)/i, 'SENTINEL-');
    const message = `Unknown collection ${quoted(literal.value)}. It may be new.`;
    const hint = didYouMean(spelledOut, publishedCollections);
    findings.warn(findings.spanOf(literal), { code: 'unknown-collection', message, hint });
  }
}

function didYouMean(name: string, known: readonly string[]): string | null {
  const nearest = nearestName(name, known);
  return nearest === null ? null : `Did you mean '${nearest}'?`;
}

const publishedNames = publishedAttributes.map(({ name }) => name);

/** Reports only warnings: the literal decides the comparison, not the types in the condition (decision 35). */
export function checkAttribute(findings: Findings, node: AttributeNode, isNegated: boolean): void {
  const published = attributeKindOf(node.name);
  if (published === undefined) {
    // New attributes appear without notice, so an unknown name is not an error.
    const message = `Unknown attribute ${quoted(node.name)}. It may be new, or the catalogue lists no attributes for its collection.`;
    const hint = didYouMean(node.name, publishedNames);
    findings.warn(findings.spanOf(node, 'name'), { code: 'unknown-attribute', message, hint });
  }
  warnKinds(findings, node, published);
  warnNotEqual(findings, node);
  checkValue(findings, node, published);
  if (node.name === 'productType') checkProductType(findings, node, isNegated);
}

/** Warns about unknown product types, and about groups of types where the catalogue's answer is not known. */
function checkProductType(findings: Findings, node: AttributeNode, isNegated: boolean): void {
  const { literal, operator } = node;
  if (literal.type !== 'text') return;
  const span = findings.spanOf(literal);
  const { value } = literal;
  if (groupIn(node) !== null) {
    if (operator === 'eq' && !isNegated) return;
    const message =
      operator === 'eq'
        ? `The catalogue may not exclude the types of the group ${value}; earshot does.`
        : `${value} is a group of product types with \`eq\` only; \`${operator}\` compares the name.`;
    findings.warn(span, { code: 'product-type-group', message, hint: 'Name the product types.' });
  } else if (/^(?:eq|ne)$/.test(operator) && !knownProductTypes.includes(value)) {
    const message = `Unknown product type ${quoted(value)}. It may be new.`;
    // Names of Sentinel-2 products have `MSIL2A`.
    const spelledOut = value.replace(/^MSIL(?=[12][AC]$)/i, 'S2MSI');
    const near = likelyNames(spelledOut, knownProductTypes).slice(0, 3);
    const hint = near.length === 0 ? null : `Did you mean '${near.join("' or '")}'?`;
    findings.warn(span, { code: 'unknown-product-type', message, hint });
  }
}

function warnKinds(
  findings: Findings,
  node: AttributeNode,
  published: AttributeKind | undefined,
): void {
  const { kind, name, valueKind, literal } = node;
  const span = findings.spanOf(node, 'kind');
  if (kind === 'Boolean') {
    const message =
      'Boolean attributes are in product records, but filtering by them is not documented.';
    findings.warn(span, { code: 'undocumented-attribute-kind', message });
  }
  if (published !== undefined && published !== kind && published !== valueKind) {
    const message = `In the catalogue, ${name} has the type ${published}, not ${kind}. earshot accepts the condition; the catalogue may find nothing.`;
    const hint = `Write OData.CSC.${published}Attribute in both places.`;
    findings.warn(span, { code: 'attribute-kind', message, hint });
  } else if (valueKind !== kind) {
    const message = `The condition has two different types, ${kind} and ${valueKind}. The value is compared by the type of the literal: ${typePhrase[literal.type].is}.`;
    // No hint: users report that such filters work and those with the same type twice do not (sentinelsat #583, eodag #2098).
    findings.warn(findings.spanOf(node, 'valueKind'), { code: 'attribute-cast', message });
  }
}

function checkValue(
  findings: Findings,
  { kind, name, valueKind, literal }: AttributeNode,
  published: AttributeKind | undefined,
): void {
  const kinds = published === undefined ? [kind, valueKind] : [published];
  const types = kinds.map((one) => valueTypes[one]);
  if (types.some((type) => fits(type, literal))) return;
  const written = findings.written(literal);
  const known =
    published === undefined
      ? `the condition has the type ${kind}`
      : `${name} has the type ${published}`;
  const message = `${quoted(written)} is ${typePhrase[literal.type].is}, but ${known}; the condition may match nothing.`;
  const hint = quotesHint(literal, published, written);
  findings.warn(findings.spanOf(literal), { code: 'attribute-value', message, hint });
}

/** Suggests quotes only for a published String: a public client lost all results when it quoted a number. */
function quotesHint(literal: Literal, published: AttributeKind | undefined, written: string) {
  if (literal.type !== 'text') {
    const isText = published === 'String';
    return isText ? `Put strings in single quotes: ${quoted(showText(written))}` : null;
  }
  const isNumber = literal.value.trim() !== '' && Number.isFinite(Number(literal.value));
  return isNumber || /^(?:true|false)$/.test(literal.value) ? 'Remove the quotes.' : null;
}
