/** Gathers what a check finds, and knows where each part of the filter stands. */
import type {
  AttributeKind,
  AttributeNode,
  ComparisonNode,
  ComparisonOperator,
  Entity,
  InNode,
  Literal,
  TextNode,
} from '../domain/filter-tree.ts';
import { formatDateUs } from '../domain/notification-date.ts';
import {
  type ConditionParts,
  type Fault,
  insteadOfIn,
  named,
  undocumentedForm,
  undocumentedOperator,
} from './cursor.ts';
import {
  attributeKindOf,
  type Field,
  type FieldType,
  fieldsOf,
  findField,
  incomparableFields,
  type PublishedAttribute,
  publishedAttributes,
  publishedCollections,
} from './fields.ts';
import type { FilterFinding, Span } from './finding.ts';
import { type Effort, newEffort } from './geometry/intersects.ts';
import { attributeForm, counterpartHint, recordOnlyFields, unknownFieldHint } from './hints.ts';
import { nearestName } from './nearest-name.ts';
import type { ParsedFilter } from './parse.ts';
import { showNumber, showText } from './print.ts';
import { asTruth, literalDate, readFilterDate } from './values.ts';

export interface Findings {
  readonly entity: Entity;
  readonly found: FilterFinding[];
  /** For all geometries of the filter together. */
  readonly effort: Effort;
  error(span: Span, fault: Fault): void;
  warn(span: Span, fault: Fault): void;
  /** Where a part of a condition stands. */
  spanOf(node: object, part: keyof ConditionParts): Span;
  /** Where a literal, a geometry, a ring or a position stands. */
  spanOfObject(part: object): Span;
  /** A span's text as written. */
  written(span: Span): string;
}

export function createFindings(text: string, parsed: ParsedFilter, entity: Entity): Findings {
  const found: FilterFinding[] = [];
  const whole: Span = { start: 0, end: text.length };
  const add = (severity: FilterFinding['severity'], { start, end }: Span, fault: Fault) => {
    found.push({ severity, ...fault, start, end });
  };
  const spanOfObject = (part: object) => parsed.spans.get(part) ?? whole;
  return {
    entity,
    found,
    effort: newEffort(),
    error: (span, fault) => add('error', span, fault),
    warn: (span, fault) => add('warning', span, fault),
    spanOf: (node, part) => parsed.parts.get(node)?.[part] ?? spanOfObject(node),
    spanOfObject,
    written: ({ start, end }) => text.slice(start, end),
  };
}

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

type ValueType = FieldType | 'number';

/** What a value of each type is. */
const typeWords: Readonly<Record<ValueType, string>> = {
  text: 'a text',
  guid: 'an id',
  number: 'a number',
  date: 'a date',
  boolean: 'true or false',
};

const samples: Readonly<Record<ValueType, string>> = {
  text: 'a text in single quotes',
  guid: "an id such as '79d7807b-66e5-41d2-a586-1628eb82c3e0'",
  number: 'a number',
  date: 'a date such as 2024-05-01T00:00:00.000Z',
  boolean: 'true or false, without quotes',
};

/** Notes a finding for a field's literal of another type; true when it is of this one. */
function checkType(
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
function checkOperator(
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
const valueTypes: Readonly<Record<AttributeKind, ValueType>> = {
  String: 'text',
  Double: 'number',
  Integer: 'number',
  DateTimeOffset: 'date',
  Boolean: 'boolean',
};

/** A date may stand in quotes (facts, filters 1). */
function fits(type: ValueType, literal: Literal): boolean {
  if (type === 'guid') return literal.type === 'text';
  if (type !== 'date' || literal.type !== 'text') return literal.type === type;
  return readFilterDate(literal.value) !== null;
}

/** For a date, in quotes or not. */
function warnInexactDate(findings: Findings, literal: Literal): void {
  const span = findings.spanOfObject(literal);
  const us = literalDate(literal);
  // The first and the last date that a literal can be.
  if (us === Number.MAX_SAFE_INTEGER || us === Number.MIN_SAFE_INTEGER) {
    const [where, limit] = us > 0 ? ['after', 'last'] : ['before', 'first'];
    const message = `Dates ${where} ${formatDateUs(us)} count as that one here: it is the ${limit} that can be held in microseconds.`;
    const hint = 'No product is that far away: leave the condition out, or write a nearer date.';
    findings.warn(span, { code: 'far-date', message, hint });
    return;
  }
  // Records have three fractional digits until 2024, six since (facts, catalogue 2).
  if (!/[.,]\d{7,}/.test(findings.written(span))) return;
  const message =
    'Dates have six fractional digits in the catalogue; those beyond are cut off here.';
  findings.warn(span, { code: 'fine-date', message, hint: 'Write at most six.' });
}

/** For a whole number that is larger than numbers are exact. */
function warnInexactNumber(findings: Findings, literal: Literal): void {
  if (literal.type !== 'number' || Number.isSafeInteger(literal.value)) return;
  const span = findings.spanOfObject(literal);
  const written = findings.written(span);
  if (!/^[+-]?\d+$/.test(written)) return;
  const message = `${named(written)} counts as ${showNumber(literal.value)} here: beyond ${Number.MAX_SAFE_INTEGER} whole numbers are not exact.`;
  findings.warn(span, { code: 'large-number', message });
}

export function checkCollections(findings: Findings, node: ComparisonNode | InNode): void {
  if (node.field !== 'Collection/Name') return;
  const literals = node.node === 'in' ? node.literals : [node.literal];
  for (const literal of literals) {
    if (literal.type !== 'text' || publishedCollections.includes(literal.value)) continue;
    const nearest = nearestName(spelledOut(literal.value), publishedCollections);
    const message = `No collection ${named(literal.value)} is known here. It may be new.`;
    const hint = nearest === null ? {} : { hint: `Did you mean '${nearest}'?` };
    const span = findings.spanOfObject(literal);
    findings.warn(span, { code: 'unknown-collection', message, ...hint });
  }
}

/** `S2` and `s-5p` as the catalogue writes them; any other name as it is. */
function spelledOut(name: string): string {
  return name.replace(/^s-?(?=\dp?$)/i, 'SENTINEL-');
}
