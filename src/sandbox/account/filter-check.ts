/** Looks over a FilterParam: quotes, parentheses, and the names in it. It does not understand it. */
import type { NotificationEvent } from '../delivery/notification.ts';
import { SubscriptionRefusal } from './subscription-refusal.ts';

const sharedFields = [
  'Name',
  'Id',
  'Collection/Name',
  'ContentDate/Start',
  'ContentDate/End',
  'OriginDate',
  'Attributes',
  'Footprint',
];

/** The documented fields of the two kinds of product, in small letters: names count in any case. */
const fields = {
  product: lowerCaseSet([...sharedFields, 'PublicationDate', 'ModificationDate', 'Online']),
  deletedProduct: lowerCaseSet([...sharedFields, 'DeletionDate', 'DeletionCause']),
};

const operators = lowerCaseSet(['and', 'or', 'not', 'eq', 'ne', 'lt', 'le', 'gt', 'ge']);
const literals = lowerCaseSet(['true', 'false', 'null']);
const functions = lowerCaseSet(['contains', 'startswith', 'endswith', 'OData.CSC.Intersects']);
const attributeLambda = /^attributes\/odata\.csc\.[a-z]+attribute\/any$/;

// A quote inside a text is doubled. A geometry is a text with a word before it.
const text = /(?:geography)?'(?:[^']|'')*'/gi;
// A number or a date has no letter in front; a name may hold dots, slashes, and hyphens.
const wordOrNumber = /[a-z_@$][\w./@$-]*|[+-]?\d[\w.:+-]*/gi;

/**
 * Throws SubscriptionRefusal (`filter`) for a filter with quotes or parentheses that do not match, and
 * for names that the products of one of the events do not have. An empty filter is every product.
 */
export function checkFilter(filter: string, events: readonly NotificationEvent[]): void {
  // A space takes the place of each text, so that what stood around it does not grow together.
  const bare = filter.replaceAll(text, ' ');
  if (bare.includes("'")) refuse('Unbalanced quotes');
  if (!hasBalancedParentheses(bare)) refuse('Unbalanced parentheses');
  if (events.some((event) => event !== 'deleted')) checkNames(bare, fields.product);
  if (events.includes('deleted')) checkNames(bare, fields.deletedProduct);
}

function hasBalancedParentheses(bare: string): boolean {
  let depth = 0;
  for (const character of bare) {
    if (character === '(') depth += 1;
    if (character === ')') depth -= 1;
    if (depth < 0) return false;
  }
  return depth === 0;
}

function checkNames(bare: string, known: ReadonlySet<string>): void {
  const variables = new Set<string>();
  for (const { 0: word, index } of bare.matchAll(wordOrNumber)) {
    const name = word.toLowerCase();
    const next = bare.slice(index + word.length).trimStart()[0];
    if (next === ':') variables.add(name);
    else if (next === '=') checkNamedArgument(word);
    else if (next === '(') checkCall(word);
    else if (!isKnown(name, known, variables)) refuse(`Invalid field: ${word}`);
  }
}

function isKnown(name: string, known: ReadonlySet<string>, variables: ReadonlySet<string>) {
  if (/^[+-]?\d/.test(name) || literals.has(name) || operators.has(name)) return true;
  const [first = ''] = name.split('/');
  return known.has(name) || (name !== first && variables.has(first));
}

function checkNamedArgument(word: string): void {
  if (!['area', 'footprint'].includes(word.toLowerCase())) refuse(`Invalid argument: ${word}`);
}

function checkCall(word: string): void {
  const name = word.toLowerCase();
  // An operator may stand before a parenthesis without being a call: `not (…)`, `and (…)`.
  if (operators.has(name) || functions.has(name) || attributeLambda.test(name)) return;
  refuse(`Invalid function: ${word}`);
}

function refuse(problem: string): never {
  throw new SubscriptionRefusal('filter', `Invalid filter: ${problem}`);
}

function lowerCaseSet(names: readonly string[]): ReadonlySet<string> {
  return new Set(names.map((name) => name.toLowerCase()));
}
