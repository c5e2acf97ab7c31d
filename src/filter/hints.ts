/** Faults and hints for the most frequent mistakes (facts, filters). */

import { likelyNames, nearestName } from '../core/terms/text.ts';
import { fieldsOf, type PublishedAttribute, publishedAttributes } from './fields.ts';
import type { Entity } from './filter-tree.ts';
import { type Fault, quoted, type Span } from './finding.ts';
import { attributeForm } from './print.ts';

/** Returns a table's own entry; ignores inherited names such as `constructor`. */
function entryOf(table: Readonly<Record<string, string>>, key: string): string | undefined {
  return Object.hasOwn(table, key) ? table[key] : undefined;
}

/** Fault for `keyword:value`, the form of OpenSearch. */
export function openSearchFault(keyword: string): Fault {
  const message = `${quoted(`${keyword}:`)} is OpenSearch syntax of the former Copernicus hub.`;
  const hint = "Write a property, an operator and a literal, such as Name eq '…'.";
  return { code: 'retired-form', message, hint };
}

const functions = ['contains', 'startswith', 'endswith', 'OData.CSC.Intersects'];

/** Fault for a function that the catalogue does not have. */
export function functionFault(name: string): Fault {
  const message = `${quoted(name)} is not a function of the filter language.`;
  const expected = `${functions.join(', ')} or Attributes/…/any`;
  if (name.toLowerCase() === 'substringof') {
    const hint = "Write contains(Name,'…'): the property comes first.";
    return { code: 'retired-form', message, expected, hint };
  }
  const nearest = nearestName(name, functions);
  const hint = nearest === null ? null : `Did you mean ${nearest}?`;
  return { code: 'unknown-function', message, expected, hint };
}

/** Fault for text before the filter, such as `$filter=`; null without one. */
export function wrappingFault(text: string): (Fault & Span) | null {
  const [prefix] = /^\s*(?:https?:\S*[?&])?[?&]?\$?filter\s*=/i.exec(text.slice(0, 300)) ?? [];
  if (prefix === undefined) return null;
  const start = prefix.length - prefix.trimStart().length;
  const message = 'Remove the name of the query option; it is not part of the filter.';
  const hint = `Remove ${quoted(prefix.trim())}.`;
  return { code: 'not-a-filter', message, hint, start, end: prefix.length };
}

/** Forms of conditions on incomplete paths, in lower case. */
const paths: Readonly<Record<string, string>> = {
  contentdate: 'ContentDate/Start or ContentDate/End',
  collection: 'Collection/Name',
  footprint: "OData.CSC.Intersects(area=geography'SRID=4326;…')",
  attributes: attributeForm('productType', 'String', "'…'"),
};

/**
 * Hint for an unknown property: the nearest property, or attribute; null for none. `conditionOn` rewrites the condition
 * for an attribute.
 */
export function unknownFieldHint(
  entity: Entity,
  name: string,
  conditionOn: (attribute: PublishedAttribute) => string,
): string | null {
  const bare = name.toLowerCase().replace(/^attributes\//, '');
  const fields = fieldsOf(entity).map((one) => one.name);
  const attribute = publishedAttributes.find((one) => one.name.toLowerCase() === bare);
  if (attribute !== undefined) return `This name is an attribute: ${conditionOn(attribute)}`;
  // A short word resembles some attribute by chance.
  const names = [...fields, ...publishedAttributes.map((one) => one.name)];
  const [likely] = bare.length < 4 ? [nearestName(bare, fields)] : likelyNames(bare, names);
  const nearest = entryOf(paths, bare) ?? likely ?? null;
  return nearest === null ? null : `Did you mean ${nearest}?`;
}

const acceptedOnlyHere = 'earshot accepts the condition; the catalogue may refuse it.';

/** Warning for a form with a clear meaning that the catalogue may not accept. */
export function undocumentedForm(problem: string, hint: string): Fault {
  return { code: 'undocumented-form', message: `${problem} ${acceptedOnlyHere}`, hint };
}

/** Warning for an operator that the catalogue may not accept. */
export function undocumentedOperator(operator: 'ne' | 'in'): Fault {
  const message = `The catalogue does not document \`${operator}\` and may refuse it.`;
  const hint =
    operator === 'ne' ? 'Write not (… eq …).' : 'Write comparisons with `eq`, joined by `or`.';
  return { code: 'undocumented-operator', message, hint };
}

/** Operators of other languages, and the equivalents in OData. */
const operators: Readonly<Record<string, string>> = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  '&': 'and',
  '&&': 'and',
  '|': 'or',
  '||': 'or',
  '!': 'not',
};

interface UnexpectedToken {
  readonly kind: string;
  readonly raw: string;
}

/** Returns the fault for an unexpected token; `fault` is what the parser knows about the position. */
export function describeUnexpected({ kind, raw }: UnexpectedToken, fault: Partial<Fault>): Fault {
  if (kind === 'end') {
    return { code: 'unexpected', message: 'Unexpected end of the filter.', ...fault };
  }
  const operator = entryOf(operators, raw);
  if (operator !== undefined) {
    const message = `${quoted(raw)} is not an operator of the filter language.`;
    return { code: 'wrong-operator', message, hint: `Write \`${operator}\`.` };
  }
  if (kind !== 'odd')
    return { code: 'unexpected', message: `Unexpected ${quoted(raw)}.`, ...fault };
  if (raw === "'") {
    const hint = 'Add the closing quote. Inside a string, write two single quotes for one quote.';
    return { code: 'unclosed-text', message: 'The string is not closed.', hint };
  }
  if (/^["“”‘’`´]/.test(raw)) return quotesFault(raw);
  return { ...fault, code: 'wrong-character', message: `Unexpected ${visible(raw)}.` };
}

function quotesFault(raw: string): Fault {
  const inner = raw.slice(1, raw.length > 1 ? -1 : undefined).replaceAll("'", "''");
  const message = `Strings need single quotes, not ${raw[0]}.`;
  const hint = raw.length > 1 ? `Write ${quoted(`'${inner}'`)}.` : "Write '.";
  return { code: 'wrong-quotes', message, hint };
}

/** Shows an invisible character by its code point. */
function visible(raw: string): string {
  if (!/^[\p{White_Space}\p{C}]/u.test(raw)) return quoted(raw);
  return `U+${raw.codePointAt(0)?.toString(16).toUpperCase().padStart(4, '0')}`;
}
