/** Parses the text of a filter into a tree, by recursive descent (grammar: facts, filters 1), and checks it. */
import { nearestName } from '../core/terms/text.ts';
import {
  checkAttribute,
  checkComparison,
  checkGeometry,
  checkTextFunction,
  guid,
  type Operation,
  quotesHint,
  undocumentedForm,
  type WrittenLiteral,
} from './check-conditions.ts';
import {
  Cursor,
  type FilterToken,
  filterDepthMax,
  filterLengthMax,
  literalOf,
  unquoted,
} from './cursor.ts';
import { findField } from './fields.ts';
import {
  type AttributeKind,
  attributeKinds,
  type Entity,
  type FilterTree,
  joined,
} from './filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, quoted, type Span } from './finding.ts';
import { isArea, parseGeometry } from './geometry/read-geometry.ts';
import { showText } from './print.ts';

interface ParsedFilter {
  readonly tree: FilterTree;
  /** Errors and warnings for the entity, sorted by position in the text. */
  readonly findings: readonly FilterFinding[];
}

/**
 * Parses a filter. Nested groups are flattened: `(a and b) and c` is one `and` with three terms. Throws
 * FilterSyntaxError at the first position that cannot be parsed, for a text over the limits, and for a NUL character,
 * which ends strings in databases.
 */
export function parseFilter(text: string, entity: Entity = 'Products'): ParsedFilter {
  if (text.length > filterLengthMax) {
    const message = `The filter has ${text.length} characters; the maximum is ${filterLengthMax}.`;
    const span = { start: filterLengthMax, end: text.length };
    throw new FilterSyntaxError(span, { code: 'too-long', message });
  }
  const cursor = new Cursor(text, entity);
  const nul = text.indexOf('\0');
  if (nul >= 0) {
    const message = 'The filter contains a NUL character (U+0000).';
    cursor.fail({ start: nul, end: nul + 1 }, { code: 'unexpected', message, hint: 'Remove it.' });
  }
  const [option] = /^\s*(?:https?:\S*[?&])?[?&]?\$?filter\s*=/i.exec(text.slice(0, 300)) ?? [];
  if (option !== undefined) {
    const message = 'The name of the query option is not part of the filter.';
    const hint = `Remove ${quoted(option.trim())}.`;
    cursor.fail({ start: 0, end: option.length }, { code: 'not-a-filter', message, hint });
  }
  const tree = parseOr(cursor);
  if (cursor.peek().kind !== 'end') failAfterCondition(cursor);
  // Otherwise the canonical form could not be parsed.
  if (levelsOf(tree) > filterDepthMax) failTooDeep(cursor, { start: 0, end: text.length });
  for (const span of cursor.hasCollection ? [] : cursor.nameSearches) {
    const message =
      'A search in names is slow without a collection; the catalogue documentation asks for one.';
    const hint = `Write Collection/Name eq '…' and ${text.slice(span.start, span.end)}.`;
    cursor.warn(span, { code: 'name-without-collection', message, hint });
  }
  return { tree, findings: cursor.findings.sort((a, b) => a.start - b.start || a.end - b.end) };
}

/** Nesting of the parentheses in the canonical form. */
function levelsOf(tree: FilterTree): number {
  if (tree.node === 'not') return 1 + levelsOf(tree.term);
  if (tree.node !== 'and' && tree.node !== 'or') return 0;
  const levels = tree.terms.map((one) => levelsOf(one) + Number('terms' in one));
  return Math.max(...levels);
}

function failTooDeep(cursor: Cursor, span: Span): never {
  const message = `The filter is nested deeper than ${filterDepthMax} levels.`;
  const hint = 'Remove unnecessary parentheses.';
  return cursor.fail(span, { code: 'too-deep', message, hint });
}

/** Parses conditions joined by `or`, each of which may be conditions joined by `and`. */
function parseOr(cursor: Cursor): FilterTree {
  const bare: Span[] = [];
  const terms: [FilterTree, ...FilterTree[]] = [parseAnd(cursor, bare)];
  while (cursor.takeOneOf(['or'])) terms.push(parseAnd(cursor, bare));
  for (const span of terms.length > 1 ? bare : []) {
    const message =
      'In OData, `and` takes precedence over `or`; the catalogue documents no precedence.';
    const hint = 'Put parentheses around this part.';
    cursor.warn(span, { code: 'precedence', message, hint });
  }
  return joined('or', terms);
}

/** Adds the place of several conditions to `bare`. */
function parseAnd(cursor: Cursor, bare: Span[]): FilterTree {
  const { start } = cursor.peek();
  const factors: [FilterTree, ...FilterTree[]] = [parseUnary(cursor)];
  while (cursor.takeOneOf(['and'])) factors.push(parseUnary(cursor));
  if (factors.length > 1) bare.push({ start, end: cursor.lastEnd });
  return joined('and', factors);
}

function parseUnary(cursor: Cursor): FilterTree {
  if (cursor.takeOneOf(['not']) === undefined) return parsePrimary(cursor);
  cursor.isNegated = !cursor.isNegated;
  const { raw, start } = cursor.peek();
  const term = parsePrimary(cursor);
  cursor.isNegated = !cursor.isNegated;
  if (raw !== '(' && (term.node === 'comparison' || term.node === 'in')) {
    const message =
      'The catalogue does not document `not` before a comparison without parentheses.';
    const hint = 'Put the comparison in parentheses.';
    cursor.warn({ start, end: cursor.lastEnd }, { code: 'precedence', message, hint });
  }
  return { node: 'not', term };
}

function parsePrimary(cursor: Cursor): FilterTree {
  if (!cursor.is('(')) return parseCondition(cursor);
  const opening = cursor.take();
  cursor.depth += 1;
  if (cursor.depth > filterDepthMax) failTooDeep(cursor, opening);
  const tree = parseOr(cursor);
  if (!cursor.is(')')) failAfterCondition(cursor);
  cursor.take();
  cursor.depth -= 1;
  return tree;
}

/** Fails for anything but `and`, `or` or the end after a condition. */
function failAfterCondition(cursor: Cursor): never {
  const { kind, raw } = cursor.peek();
  const expected = `\`and\`, \`or\` or ${cursor.depth > 0 ? '`)`' : 'the end'}`;
  if (raw === ')' || kind === 'end') {
    const message = `A parenthesis is not ${raw === ')' ? 'opened' : 'closed'}.`;
    cursor.failUnexpected({ code: 'missing-parenthesis', message, expected });
  }
  if (kind !== 'word' && raw !== '(') cursor.failUnexpected({ expected });
  const message = `\`and\` or \`or\` is missing before ${quoted(raw)}.`;
  return cursor.failUnexpected({ code: 'missing-joint', message, expected });
}

const textFunctions = ['contains', 'startswith', 'endswith'] as const;
const operators = ['eq', 'ne', 'lt', 'le', 'gt', 'ge', 'in'] as const;
const reserved = /^(?:and|or|not|in|eq|ne|lt|le|gt|ge|true|false|null)$/i;
const intersectsFunction = 'OData.CSC.Intersects';

/** Parses one condition: a comparison, a string function, an attribute condition or an intersection. */
function parseCondition(cursor: Cursor): FilterTree {
  const token = cursor.peek();
  const { kind, raw, start } = token;
  if (kind !== 'word' || reserved.test(raw)) {
    cursor.failUnexpected({
      code: 'missing-condition',
      message: 'A condition is missing.',
      expected: "a condition such as Name eq '…', contains(Name,'…') or OData.CSC.Intersects(…)",
    });
  }
  if (cursor.peek(1).raw !== '(') return parseComparison(cursor);
  const name = cursor.takeOneOf(textFunctions);
  if (name !== undefined) return parseText(cursor, name, start);
  const called = cursor.takeOneOf([intersectsFunction, 'Intersects']);
  if (called === 'Intersects') {
    // As two public clients write it.
    const problem = 'The prefix of the function is missing.';
    cursor.warn(token, undocumentedForm(problem, `Write ${intersectsFunction}.`));
  }
  if (called !== undefined) return parseIntersects(cursor, start);
  if (/^attributes\//i.test(raw)) return parseAttribute(cursor);
  const known = [...textFunctions, intersectsFunction];
  const nearest = nearestName(raw, known);
  return cursor.fail(token, {
    code: 'unknown-function',
    message: `${quoted(raw)} is not a function of the filter language.`,
    expected: `${known.join(', ')} or Attributes/…/any`,
    hint: nearest === null ? null : `Did you mean ${nearest}?`,
  });
}

function parseComparison(cursor: Cursor): FilterTree {
  const name = cursor.take();
  const field = publishedName(name);
  const operation = parseOperation(cursor, name);
  cursor.count(operation.values.length, name.start);
  checkComparison(cursor, name, operation);
  const { operator, values } = operation;
  return operator === 'in'
    ? { node: 'in', field, literals: values.map(({ literal }) => literal) }
    : { node: 'comparison', field, operator, literal: values[0].literal };
}

function parseText(
  cursor: Cursor,
  name: (typeof textFunctions)[number],
  start: number,
): FilterTree {
  cursor.takeSymbol('(');
  if (cursor.peek().kind !== 'word') cursor.failUnexpected({ expected: 'a property' });
  const field = cursor.take();
  cursor.takeSymbol(',');
  const { kind, raw } = cursor.peek();
  if (kind !== 'text') {
    const hint = kind === 'word' || kind === 'number' ? quotesHint(raw) : null;
    cursor.failUnexpected({ expected: 'a string in single quotes', hint });
  }
  const text = unquoted(cursor.take().raw);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  cursor.count(1, start);
  checkTextFunction(cursor, name, field, { start, end: cursor.lastEnd });
  return { node: 'text', function: name, field: publishedName(field), text };
}

/** Returns the published spelling of a known property; other names as written. */
function publishedName({ raw }: FilterToken): string {
  return findField(raw)?.name ?? raw;
}

/** Parses an operator and its literals; `field` is the property before, if it is one. */
function parseOperation(cursor: Cursor, field?: FilterToken): Operation {
  const span = cursor.peek();
  const operator = cursor.takeOneOf(operators);
  if (operator === undefined) {
    // A single word may be a part of a name.
    const isAlone = span.kind === 'end' || /^(?:and|or)$/i.test(span.raw);
    const isPart = field && !findField(field.raw) && /^[\w.-]{1,60}$/.test(field.raw);
    return cursor.failUnexpected({
      code: 'missing-operator',
      message: 'An operator is missing.',
      expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
      hint: isAlone && isPart ? `To search names: contains(Name,'${field.raw}')` : null,
    });
  }
  const isId = field !== undefined && publishedName(field) === 'Id';
  if (operator !== 'in') return { span, operator, values: [parseLiteral(cursor, isId)] };
  cursor.takeSymbol('(', { expected: "a list of values such as ('a','b')" });
  const values: [WrittenLiteral, ...WrittenLiteral[]] = [parseLiteral(cursor, isId)];
  while (cursor.takeIf(',')) values.push(parseLiteral(cursor, isId));
  cursor.takeSymbol(')', { code: 'missing-parenthesis', expected: '`,` or `)`' });
  return { span, operator, values };
}

const missingLiteral = {
  code: 'missing-value',
  message: 'A literal is missing.',
  expected: 'a string in single quotes, a number, a date, true or false',
} as const;

/** `isId`: accepts a GUID without quotes, as two public clients write it. */
function parseLiteral(cursor: Cursor, isId: boolean): WrittenLiteral {
  const token = cursor.peek();
  const { raw } = token;
  const literal = literalOf(token);
  if (literal !== null) {
    if (literal.type === 'boolean') cursor.checkSpelling(token, String(literal.value));
    return { literal, token: cursor.take() };
  }
  if (isId && guid.test(raw)) {
    const hint = `Write ${quoted(showText(raw))}.`;
    cursor.warn(token, undocumentedForm('An id is written without quotes.', hint));
    return { literal: { type: 'text', value: raw }, token: cursor.take() };
  }
  const value = cursor.peek(1);
  if (token.kind === 'word' && value.kind === 'text' && value.start === token.end) {
    const message = `\`${raw}'…'\` is syntax of the former Copernicus hub (OData 2).`;
    const hint = `Write only the literal: ${quoted(value.raw)}`;
    cursor.fail({ start: token.start, end: value.end }, { code: 'not-a-literal', message, hint });
  }
  const isNumeric = /^(?:number|date|numeral)$/.test(token.kind);
  if (!isNumeric && (token.kind !== 'word' || /^(?:and|or|null)$/i.test(raw))) {
    return cursor.failUnexpected(missingLiteral);
  }
  const message = `${quoted(raw)} is not a valid literal.`;
  // A property, a number such as 1.2.3, or a date such as 2024-02-30, is no string.
  const isText =
    findField(raw) === undefined && !/^[+-]?(?:[\d.]+$|\d+e|\d{4}-\d\d?(?:-|$))/i.test(raw);
  const { expected } = missingLiteral;
  const hint = isText ? quotesHint(raw) : null;
  return cursor.fail(token, { code: 'not-a-literal', message, expected, hint });
}

const lambdaPath = /^attributes\/odata\.csc\.([a-z]+)attribute\/any$/i;
/**
 * Parses `Attributes/OData.CSC.<kind>Attribute/any(…)`. `in (…)` becomes conditions with `eq`, joined by `or`:
 * equivalent, and documented.
 */
function parseAttribute(cursor: Cursor): FilterTree {
  const path = cursor.take();
  const code = 'invalid-attribute-condition';
  const kind = kindNamed(lambdaPath.exec(path.raw)?.[1]);
  const shown = kind ?? 'String';
  const expected = `Attributes/OData.CSC.${shown}Attribute/any(att:att/Name eq '…' and att/OData.CSC.${shown}Attribute/Value eq …)`;
  if (kind === undefined) {
    const message = `${quoted(path.raw)} is not a path of attributes; types: ${attributeKinds.join(', ')}.`;
    return cursor.fail(path, { code, message, expected });
  }
  // The documentation also writes `attributes` in lower case, but never the type names.
  const start = path.start + 'Attributes/'.length;
  cursor.checkSpelling({ start, end: path.end }, `OData.CSC.${kind}Attribute/any`);
  const required = (isNext: boolean) => {
    if (!isNext) cursor.failUnexpected({ code, expected });
    return cursor.take();
  };
  required(cursor.is('('));
  const variable = required(cursor.peek().kind === 'word' && cursor.peek(1).raw === ':');
  required(cursor.is(':'));
  if (variable.raw.includes('/')) {
    // As the library odata-query writes it.
    const problem = 'The lambda variable has a slash.';
    cursor.warn(variable, undocumentedForm(problem, 'Use a name such as att.'));
  }
  /** The form of the next token after `att/`; null for another token. */
  const member = (form: RegExp) => {
    const { raw } = cursor.peek();
    const prefix = `${variable.raw}/`;
    return raw.startsWith(prefix) ? form.exec(raw.slice(prefix.length)) : null;
  };
  required(member(/^name$/i) !== null);
  required(cursor.is('eq'));
  const nameToken = required(cursor.peek().kind === 'text');
  required(cursor.is('and'));
  const cast = member(/^(?:(odata\.csc\.([a-z]+)attribute)\/)?value$/i);
  const valueKind = kindNamed(cast?.[2] ?? kind);
  if (cast === null || valueKind === undefined) return cursor.failUnexpected({ code, expected });
  const valuePath = cursor.take();
  const end = valuePath.end - '/Value'.length;
  const castSpan = { start: end - (cast[1]?.length ?? 0), end };
  if (cast[1] !== undefined) cursor.checkSpelling(castSpan, `OData.CSC.${valueKind}Attribute`);
  const operation = parseOperation(cursor);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const name = unquoted(nameToken.raw);
  const { operator: written, values } = operation;
  cursor.count(values.length, path.start);
  const tokens = { path, name: nameToken, valuePath };
  checkAttribute(cursor, { kind, name, valueKind }, tokens, operation);
  const operator = written === 'in' ? 'eq' : written;
  const conditionOf = ({ literal }: WrittenLiteral) =>
    ({ node: 'attribute', kind, name, valueKind, operator, literal }) as const;
  const [first, ...others] = values;
  return joined('or', [conditionOf(first), ...others.map(conditionOf)]);
}

function kindNamed(word: string | undefined): AttributeKind | undefined {
  return attributeKinds.find((one) => one.toLowerCase() === word?.toLowerCase());
}

const geographyForm = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

/** Parses `(area=geography'SRID=4326;…')`; two public clients write a comma instead of the equals sign. */
function parseIntersects(cursor: Cursor, start: number): FilterTree {
  const hint = `Write ${intersectsFunction}(area=${geographyForm}).`;
  cursor.takeSymbol('(');
  const argument = cursor.takeOneOf(['area', 'Footprint']);
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  const sign = cursor.is(',') ? cursor.take() : cursor.takeSymbol('=', { hint });
  if (sign.raw === ',') {
    const problem = 'The documented form has an equals sign instead of the comma.';
    cursor.warn(sign, undocumentedForm(problem, `Write ${argument}=geography'…'.`));
  }
  const prefixEnd = cursor.peek().end;
  const isGeography = cursor.takeOneOf(['geography']) !== undefined;
  const token = cursor.peek();
  if (!isGeography || token.kind !== 'text' || token.start > prefixEnd) {
    return cursor.failUnexpected({ expected: geographyForm });
  }
  cursor.take();
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  cursor.count(1, start);
  return { node: 'intersects', argument, ...readGeography(cursor, token) };
}

/** Reads the text between the quotes of a token, and checks the geometry. */
function readGeography(cursor: Cursor, token: FilterToken) {
  const [, srid, wkt = ''] = /^\s*srid\s*=\s*(\d{1,15})\s*;(.*)$/is.exec(unquoted(token.raw)) ?? [];
  // In a filter, positions have no height.
  const isFlat = wkt.split(/[(),]/).every((part) => !/\S\s+\S+\s+\S/.test(part));
  const geometry = isFlat ? parseGeometry(wkt) : null;
  if (srid === undefined || geometry === null || !isArea(geometry)) {
    const message = 'The geometry cannot be read.';
    const expected = 'SRID=4326; and POINT, POLYGON, MULTIPOINT or MULTIPOLYGON';
    return cursor.fail(token, { code: 'invalid-geometry', message, expected });
  }
  if (srid !== '4326') {
    const message = `Reference system ${srid} is not supported; the catalogue accepts only EPSG:4326.`;
    const hint = 'Convert to longitude and latitude in degrees (WGS 84), and write SRID=4326.';
    cursor.error(token, { code: 'invalid-geometry', message, hint });
  } else checkGeometry(cursor, token, geometry);
  return { srid: Number(srid), geometry };
}
