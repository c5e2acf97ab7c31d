/** Checks the conditions of a filter, and warns about those that are probably a mistake. */
import { readDateUs } from '../core/terms/dates.ts';
import { likelyNames, nearestName } from '../core/terms/text.ts';
import { type Cursor, dateLiteral, type FilterToken } from './cursor.ts';
import {
  attributeKindOf,
  type Field,
  type FieldType,
  fieldsOf,
  findField,
  publishedAttributes,
  publishedCollections,
} from './fields.ts';
import type {
  AttributeKind,
  AttributeNode,
  ComparisonOperator,
  Geometry,
  Literal,
  Ring,
  TextFunction,
} from './filter-tree.ts';
import { type Fault, quoted, type Span } from './finding.ts';
import { geometryFaults } from './geometry/read-geometry.ts';
import { polygonsOf } from './geometry/ring.ts';
import { attributeForm, showText } from './print.ts';
import { groupIn, knownProductTypes } from './product-conditions.ts';
import { asTruth } from './values.ts';

/** A literal with its token. */
export interface WrittenLiteral {
  readonly literal: Literal;
  readonly token: FilterToken;
}

/** An operator with its token and its literals, of which only `in` has several. */
export interface Operation {
  readonly span: FilterToken;
  readonly operator: ComparisonOperator | 'in';
  readonly values: readonly [WrittenLiteral, ...WrittenLiteral[]];
}

type ValueType = FieldType | 'number';

/** Literals of each type. */
const typePhrase: Readonly<Record<ValueType, string>> = {
  text: 'a string in single quotes',
  guid: "a GUID such as '79d7807b-66e5-41d2-a586-1628eb82c3e0'",
  number: 'a number',
  date: 'a date such as 2024-05-01T00:00:00.000Z',
  boolean: 'true or false, without quotes',
};

/** Literal type for each attribute type. */
const valueTypes: Readonly<Record<AttributeKind, ValueType>> = {
  String: 'text',
  Double: 'number',
  Integer: 'number',
  DateTimeOffset: 'date',
  Boolean: 'boolean',
};

/** Form of product ids. */
export const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Compares types; a date may be quoted, and has the same form then (facts, filters 1). */
function fits(type: ValueType, literal: Literal): boolean {
  if (type === 'guid') return literal.type === 'text';
  if (type !== 'date' || literal.type !== 'text') return literal.type === type;
  return dateLiteral.test(literal.value) && readDateUs(literal.value) !== null;
}

/** Warning for a form with a clear meaning that the catalogue may not accept. */
export function undocumentedForm(problem: string, hint: string): Fault {
  const accepted = 'earshot accepts the condition; the catalogue may refuse it.';
  return { code: 'undocumented-form', message: `${problem} ${accepted}`, hint };
}

/** Warns about the operators `ne` and `in`. */
function checkOperator(cursor: Cursor, { span, operator }: Operation): void {
  if (operator !== 'ne' && operator !== 'in') return;
  const message = `The catalogue does not document \`${operator}\` and may refuse it.`;
  const hint =
    operator === 'ne' ? 'Write not (… eq …).' : 'Write comparisons with `eq`, joined by `or`.';
  cursor.warn(span, { code: 'undocumented-operator', message, hint });
}

export function checkComparison(cursor: Cursor, name: FilterToken, operation: Operation): void {
  const field = checkField(cursor, name, operation);
  checkOperator(cursor, operation);
  if (field === null) return;
  for (const value of operation.values) checkLiteral(cursor, field, value);
  if (field.name !== 'Collection/Name') return;
  cursor.hasCollection = true;
  for (const { literal, token } of operation.values) {
    if (literal.type !== 'text' || publishedCollections.includes(literal.value)) continue;
    // Expands `S2` and `s-5p` to the names of the catalogue.
    const spelledOut = literal.value.replace(/^s-?(?=\dp?$)/i, 'SENTINEL-');
    const message = `Unknown collection ${quoted(literal.value)}. It may be new.`;
    const hint = didYouMean(nearestName(spelledOut, publishedCollections));
    cursor.warn(token, { code: 'unknown-collection', message, hint });
  }
}

/** Checks a condition such as `contains(Name,'…')`, whose name is a token. */
export function checkTextFunction(
  cursor: Cursor,
  called: TextFunction,
  name: FilterToken,
  span: Span,
): void {
  const field = checkField(cursor, name);
  if (field === null) return;
  if (field.type === 'guid') {
    const hint = "Compare the complete id: Id eq '…'.";
    cursor.warn(name, undocumentedForm(`${called} is applied to an id.`, hint));
  } else if (field.type !== 'text') {
    const message = `${called} needs a string property; ${field.name} is compared with ${typePhrase[field.type]}.`;
    cursor.error(name, { code: 'wrong-type', message, expected: 'Name' });
  } else if (field.name === 'Name') {
    cursor.nameSearches.push(span);
  }
}

/** Returns the property of a condition; null, after reporting an error, if the entity does not have it. */
function checkField(cursor: Cursor, name: FilterToken, operation?: Operation): Field | null {
  const { entity } = cursor;
  const field = findField(name.raw);
  if (field?.entities.includes(entity) === true) return field;
  if (field !== undefined) {
    const message = `${field.name} is a property of ${field.entities[0]}, not of ${entity}.`;
    cursor.error(name, { code: 'field-of-other-entity', message });
    return null;
  }
  const names = fieldsOf(entity).map((one) => one.name);
  const message = `Filters for ${entity} have no property ${quoted(name.raw)}.`;
  const hint = fieldHint(name.raw, names, operation);
  cursor.error(name, { code: 'unknown-field', message, expected: names.join(', '), hint });
  return null;
}

/** Conditions on incomplete paths, in lower case. */
const paths: ReadonlyMap<string, string> = new Map([
  ['contentdate', 'ContentDate/Start or ContentDate/End'],
  ['collection', 'Collection/Name'],
  ['footprint', "OData.CSC.Intersects(area=geography'SRID=4326;…')"],
  ['attributes', attributeForm('productType', 'String', "'…'")],
]);

/** Maximum length of a literal that a hint repeats. */
const valueShownMax = 200;

/** Hint for an unknown property: the nearest property or attribute; null for none. */
function fieldHint(name: string, fields: readonly string[], operation?: Operation): string | null {
  const bare = name.toLowerCase().replace(/^attributes\//, '');
  const attribute = publishedAttributes.find((one) => one.name.toLowerCase() === bare);
  if (attribute !== undefined) {
    const { kind } = attribute;
    const [value, ...others] = operation?.values ?? [];
    const isShown =
      value !== undefined &&
      others.length === 0 &&
      fits(valueTypes[kind], value.literal) &&
      value.token.raw.length <= valueShownMax;
    const shown = isShown ? value.token.raw : kind === 'String' ? "'…'" : '…';
    const operator = operation?.operator === 'in' ? 'eq' : operation?.operator;
    return `This name is an attribute: ${attributeForm(attribute.name, kind, shown, operator)}`;
  }
  // A short word resembles some attribute by chance.
  const names = [...fields, ...publishedNames];
  const [likely] = bare.length < 4 ? [nearestName(bare, fields)] : likelyNames(bare, names);
  const nearest = paths.get(bare) ?? likely;
  return nearest ? `Did you mean ${nearest}?` : null;
}

function checkLiteral(cursor: Cursor, { name, type }: Field, value: WrittenLiteral): void {
  const { literal, token } = value;
  const expected = typePhrase[type];
  if (!fits(type, literal)) {
    const message = `${name} cannot be compared with ${quoted(token.raw)}.`;
    if (type === 'boolean' && literal.type === 'text' && asTruth(literal.value) !== null) {
      cursor.warn(token, undocumentedForm(message, 'Remove the quotes.'));
      return;
    }
    const hint = type === 'text' || type === 'guid' ? quotesHint(token.raw) : null;
    cursor.error(token, { code: 'wrong-type', message, expected, hint });
  } else if (type === 'guid' && literal.type === 'text' && !guid.test(literal.value)) {
    const message = `${quoted(token.raw)} is not a product id (GUID), so nothing matches.`;
    cursor.warn(token, { code: 'odd-id', message, expected });
  }
}

/** Advises to write a literal as a string. */
export function quotesHint(written: string): string {
  return `Put strings in single quotes: ${quoted(showText(written))}`;
}

function didYouMean(...names: readonly (string | null)[]): string | null {
  return names.length === 0 || names[0] === null ? null : `Did you mean '${names.join("' or '")}'?`;
}

const publishedNames = publishedAttributes.map(({ name }) => name);

/**
 * Checks a condition on an attribute with one literal or several. Reports only warnings: the literal decides the
 * comparison, not the types in the condition (decision 35).
 */
export function checkAttribute(
  cursor: Cursor,
  { kind, name, valueKind }: Pick<AttributeNode, 'kind' | 'name' | 'valueKind'>,
  tokens: Record<'path' | 'name' | 'valuePath', FilterToken>,
  operation: Operation,
): void {
  const published = attributeKindOf(name);
  if (published === undefined) {
    // New attributes appear without notice, so an unknown name is not an error.
    const message = `Unknown attribute ${quoted(name)}. It may be new, or the catalogue lists no attributes for its collection.`;
    const hint = didYouMean(nearestName(name, publishedNames));
    cursor.warn(tokens.name, { code: 'unknown-attribute', message, hint });
  }
  if (kind === 'Boolean') {
    const message =
      'Boolean attributes are in product records, but filtering by them is not documented.';
    cursor.warn(tokens.path, { code: 'undocumented-attribute-kind', message });
  }
  if (published !== undefined && published !== kind && published !== valueKind) {
    const message = `In the catalogue, ${name} has the type ${published}, not ${kind}. earshot accepts the condition; the catalogue may find nothing.`;
    const hint = `Write OData.CSC.${published}Attribute in both places.`;
    cursor.warn(tokens.path, { code: 'attribute-kind', message, hint });
  } else if (valueKind !== kind) {
    const message = `The condition has two different types, ${kind} and ${valueKind}. The value is compared by the type of the literal.`;
    // No hint: users report that such filters work and those with the same type twice do not (sentinelsat #583, eodag #2098).
    cursor.warn(tokens.valuePath, { code: 'attribute-cast', message });
  }
  checkOperator(cursor, operation);
  const expected = published === undefined ? [kind, valueKind] : [published];
  for (const value of operation.values) {
    checkAttributeValue(cursor, expected, published !== undefined, value);
    if (name === 'productType') checkProductType(cursor, operation.operator, value);
  }
}

function checkAttributeValue(
  cursor: Cursor,
  [kind, ...others]: readonly AttributeKind[],
  isPublished: boolean,
  { literal, token }: WrittenLiteral,
): void {
  if (kind === undefined || [kind, ...others].some((one) => fits(valueTypes[one], literal))) return;
  const known = isPublished ? 'the attribute' : 'the condition';
  const message = `${quoted(token.raw)} does not fit the type ${kind} of ${known}; the condition may match nothing.`;
  let hint: string | null = null;
  // Only for a published String: a public client lost all results when it quoted a number.
  if (literal.type !== 'text')
    hint = isPublished && kind === 'String' ? quotesHint(token.raw) : null;
  else if (/^'(?:true|false|\s*[\d.eE+-]+\s*)'$/.test(token.raw)) hint = 'Remove the quotes.';
  cursor.warn(token, { code: 'attribute-value', message, hint });
}

/** Warns about unknown product types, and about groups of types where the catalogue's answer is not known. */
function checkProductType(
  cursor: Cursor,
  operator: Operation['operator'],
  { literal, token }: WrittenLiteral,
): void {
  if (literal.type !== 'text') return;
  const { value } = literal;
  const isEqual = operator === 'eq' || operator === 'in';
  if (groupIn({ name: 'productType', literal }) !== null) {
    if (isEqual && !cursor.isNegated) return;
    const message = isEqual
      ? `The catalogue may not exclude the types of the group ${value}; earshot does.`
      : `${value} is a group of product types with \`eq\` only; \`${operator}\` compares the name.`;
    cursor.warn(token, { code: 'product-type-group', message, hint: 'Name the product types.' });
  } else if ((isEqual || operator === 'ne') && !knownProductTypes.includes(value)) {
    const message = `Unknown product type ${quoted(value)}. It may be new.`;
    // Names of Sentinel-2 products have `MSIL2A`.
    const spelledOut = value.replace(/^MSIL(?=[12][AC]$)/i, 'S2MSI');
    const near = likelyNames(spelledOut, knownProductTypes).slice(0, 3);
    cursor.warn(token, { code: 'unknown-product-type', message, hint: didYouMean(...near) });
  }
}

/** Checks the geometry in a token. */
export function checkGeometry(cursor: Cursor, token: FilterToken, geometry: Geometry): void {
  for (const message of geometryFaults(geometry)) {
    cursor.error(token, { code: 'invalid-geometry', message });
  }
  // An edge of 360 degrees is read as written.
  const isWide = (ring: Ring) =>
    ring.some(([x], i) => {
      const width = Math.abs(x - (ring[i - 1]?.[0] ?? x));
      return width > 180 && width < 360;
    });
  if (!polygonsOf(geometry).flat().some(isWide)) return;
  const message =
    'An edge spans more than 180 degrees. The shorter path, across the antimeridian, is used.';
  const hint = 'For the longer path, add a point between the two positions.';
  cursor.warn(token, { code: 'wide-edge', message, hint });
}
