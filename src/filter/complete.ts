/** Completions of a filter: the names, operators and literals that may stand at a position. */

import { formatDateUs } from '../domain/dates.ts';
import { type AttributeKind, attributeKinds, type Entity } from '../domain/filter-tree.ts';
import { publishedCollections } from '../domain/missions.ts';
import { dayUs } from '../domain/time-units.ts';
import { Cursor, filterLengthMax, type Token, unquoted } from './cursor.ts';
import { attributeKindOf, type Field, fieldsOf, findField, publishedAttributes } from './fields.ts';
import { attributeForm, showText } from './print.ts';

/** A text that may replace [start, end) of the filter. */
export interface Completion {
  /** Short name for a list. */
  label: string;
  /** Kind of the completion, in a few words. */
  detail: string;
  text: string;
  start: number;
  end: number;
  /** Position in `text` at which typing continues. */
  caret: number;
}

type Offer = Pick<Completion, 'label' | 'detail' | 'text'> & { caret?: number };

export interface CompletionOptions {
  entity: Entity;
  nowUs: number;
  /** Known values of attributes, by name. */
  values?: Readonly<Record<string, readonly string[]>>;
}

const completionsMax = 40;

/** Returns completions for a position in the text; none for a filter that is too long. Never throws. */
export function completeFilter(
  text: string,
  position: number,
  options: CompletionOptions,
): Completion[] {
  if (text.length > filterLengthMax || text.includes('\0')) return [];
  const at = Math.max(0, Math.min(position, text.length));
  const { before, start, typed, isText } = partBefore(text.slice(0, at));
  const rest = isText ? /^[^'\s(),]*'?/ : /^[\p{L}\p{N}_.@$/:-]*/u;
  const end = at + (rest.exec(text.slice(at))?.[0].length ?? 0);
  const collections = [...text.matchAll(/Collection\/Name\s+eq\s+'([^']*)'/gi)].map(
    ([, name = '']) => name,
  );
  const offers = offersAfter(before, { ...options, collections });
  const found = matching(isText ? offers.filter((one) => one.text.startsWith("'")) : offers, typed);
  // A complete word needs no completion; a string may need its closing quote.
  if (!isText && found.length === 1 && found[0]?.label === typed) return [];
  return found
    .slice(0, completionsMax)
    .map(({ caret, ...offer }) => ({ ...offer, start, end, caret: caret ?? offer.text.length }));
}

/** Splits the text into complete tokens and the word, or the string, that is being typed. */
function partBefore(text: string) {
  const cursor = new Cursor(text);
  const tokens: Token[] = [];
  while (cursor.peek().kind !== 'end') {
    const token = cursor.take();
    // A quote without a second one: the rest is the string.
    if (token.kind === 'odd' && token.raw === "'") {
      return { before: tokens, start: token.start, typed: text.slice(token.end), isText: true };
    }
    tokens.push(token);
  }
  const last = tokens.at(-1);
  const isTyped = last?.end === text.length && !['symbol', 'text'].includes(last.kind);
  if (last === undefined || !isTyped) {
    return { before: tokens, start: text.length, typed: '', isText: false };
  }
  return { before: tokens.slice(0, -1), start: last.start, typed: last.raw, isText: false };
}

/** Returns the offers that start with the typed text, first functions on text, then those that contain it. */
function matching(offers: readonly Offer[], typed: string): Offer[] {
  const lower = typed.toLowerCase();
  const rankOf = (offer: Offer) => {
    const place = offer.label.toLowerCase().indexOf(lower);
    if (place === 0) return lower !== '' && textFunctions.includes(offer) ? 0 : 1;
    return place > 0 ? 2 : -1;
  };
  const found = offers.filter((one) => rankOf(one) >= 0);
  return found.toSorted((a, b) => rankOf(a) - rankOf(b));
}

type Context = CompletionOptions & { collections: readonly string[] };

/** Returns everything that may follow the tokens. */
function offersAfter(before: readonly Token[], context: Context): Offer[] {
  const call = openCall(before);
  const [last, previous] = [before.at(-1), before.at(-2)];
  const kind = kindOfPath(call?.name ?? '');
  if (call !== null && kind !== null)
    return attributeOffers(before.slice(call.index + 1), kind, context);
  if (call !== null && /^(?:contains|startswith|endswith)$/i.test(call.name)) {
    return last?.raw === '(' ? fieldOffers(context, ['text'], ",''") : [];
  }
  if (call !== null && /intersects$/i.test(call.name)) return last?.raw === '(' ? [areaOffer] : [];
  if (call !== null && call.name.toLowerCase() === 'in') {
    const field = findField(before[call.index - 2]?.raw ?? '');
    return last?.kind === 'text' ? [] : valuesOf(field, context);
  }
  if (last === undefined || /^(?:\(|and|or|not)$/i.test(last.raw)) return conditionOffers(context);
  if (isOperator(last)) return valuesOf(findField(previous?.raw ?? ''), context);
  const isValue = last.kind === 'word' && previous !== undefined && isOperator(previous);
  if (last.kind !== 'word' || isValue) return joints;
  const field = findField(last.raw);
  return field === undefined ? [] : operatorOffers(field.type === 'text' ? 'String' : field.type);
}

/** Returns the innermost open parenthesis that belongs to a name, unless a group is opened inside it. */
function openCall(before: readonly Token[]): { name: string; index: number } | null {
  const open: { name: string; index: number }[] = [];
  for (const [index, { kind, raw }] of before.entries()) {
    const opener = before[index - 1];
    const isCall = opener?.kind === 'word' && !/^(?:and|or|not)$/i.test(opener.raw);
    if (kind === 'symbol' && raw === '(') open.push({ name: isCall ? opener.raw : '', index });
    if (kind === 'symbol' && raw === ')') open.pop();
  }
  const last = open.at(-1);
  return last === undefined || last.name === '' ? null : last;
}

function kindOfPath(path: string): AttributeKind | null {
  const [, word = ''] = /^attributes\/odata\.csc\.([a-z]+)attribute\/any$/i.exec(path) ?? [];
  return attributeKinds.find((one) => one.toLowerCase() === word.toLowerCase()) ?? null;
}

const isOperator = ({ kind, raw }: Token) =>
  kind === 'word' && /^(?:eq|ne|lt|le|gt|ge)$/i.test(raw);

const word = (text: string, detail: string): Offer => ({ label: text, detail, text: `${text} ` });

const joints = [word('and', 'both conditions'), word('or', 'one of the conditions')];

const areaOffer: Offer = {
  label: 'area=',
  detail: 'area as well-known text, longitude first',
  text: "area=geography'SRID=4326;POLYGON((5 45,11 45,11 48,5 48,5 45))'",
};

const textFunctions: readonly Offer[] = ['contains', 'startswith', 'endswith'].map((label) => ({
  label,
  detail: 'function on text',
  text: `${label}(Name,'')`,
  caret: label.length + "(Name,'".length,
}));

const functions: readonly Offer[] = [
  ...textFunctions,
  {
    label: 'OData.CSC.Intersects',
    detail: 'footprint intersects an area',
    text: `OData.CSC.Intersects(${areaOffer.text})`,
  },
  { label: 'not', detail: 'excludes matches', text: 'not ()', caret: 'not ('.length },
];

function conditionOffers(context: Context): Offer[] {
  return [
    ...fieldOffers(context, ['text', 'guid', 'date', 'boolean'], ' '),
    ...publishedFor(context).map(({ name, kind, collections }) => {
      const text = attributeForm(name, kind, '', kind === 'Double' ? 'lt' : 'eq');
      const detail = `attribute, ${kind}: ${collections.join(', ')}`;
      return { label: name, detail, text, caret: text.length - 1 };
    }),
    ...functions,
  ];
}

function fieldOffers(
  { entity }: Context,
  types: readonly Field['type'][],
  suffix: string,
): Offer[] {
  return fieldsOf(entity)
    .filter(({ type }) => types.includes(type))
    .map(({ name, type }) => {
      const text = `${name}${suffix}`;
      const caret = text.endsWith("'") ? text.length - 1 : text.length;
      return { label: name, detail: `property, ${type}`, text, caret };
    });
}

/** Returns the attributes of the collections that the filter names; all without one. */
function publishedFor({ collections }: Context) {
  const own = publishedAttributes.filter((one) =>
    one.collections.some((name) => collections.includes(name)),
  );
  return own.length > 0 ? own : publishedAttributes;
}

const operatorNames: Readonly<Record<string, string>> = {
  eq: 'equal',
  ne: 'not equal',
  lt: 'less than',
  le: 'less than or equal',
  gt: 'greater than',
  ge: 'greater than or equal',
};

/** Text, ids and Booleans have no order. */
function operatorOffers(type: AttributeKind | Field['type']): Offer[] {
  const isOrdered = ['date', 'Double', 'Integer', 'DateTimeOffset'].includes(type);
  return Object.entries(operatorNames)
    .filter(([name]) => isOrdered || name === 'eq')
    .map(([name, meaning]) => word(name, meaning));
}

/** Offers for the tokens after `any(`. */
function attributeOffers(tokens: readonly Token[], kind: AttributeKind, context: Context): Offer[] {
  const [last, previous] = [tokens.at(-1), tokens.at(-2)];
  const [{ raw: variable } = { raw: 'att' }] = tokens;
  const value = word(`${variable}/OData.CSC.${kind}Attribute/Value`, 'value of the attribute');
  if (last === undefined) {
    const text = "att:att/Name eq ''";
    return [{ label: 'att:att/Name eq', detail: 'name', text, caret: text.length - 1 }];
  }
  if (/\/Name$/i.test(last.raw)) return [word('eq', 'equal')];
  if (/\/Value$/i.test(last.raw)) return operatorOffers(kind);
  if (/^and$/i.test(last.raw)) return [value];
  if (!isOperator(last)) {
    const isName = last.kind === 'text' && /\/Name$/i.test(tokens.at(-3)?.raw ?? '');
    return isName ? [{ ...value, label: `and ${value.label}`, text: `and ${value.text}` }] : [];
  }
  if (/\/Name$/i.test(previous?.raw ?? '')) {
    const own = publishedFor(context).filter((one) => one.kind === kind);
    return own.map(({ name, collections }) => ({
      ...quotedOffer(name),
      detail: collections.join(', '),
    }));
  }
  const name = tokens.find((token) => token.kind === 'text');
  return attributeValues(name === undefined ? '' : unquoted(name.raw), kind, context);
}

function attributeValues(name: string, kind: AttributeKind, context: Context): Offer[] {
  const type = attributeKindOf(name) ?? kind;
  if (type === 'DateTimeOffset') return dateOffers(context);
  if (type === 'Boolean') return booleans;
  const known = Object.hasOwn(context.values ?? {}, name) ? context.values?.[name] : [];
  return (known ?? []).map((one) => ({ ...quotedOffer(one), detail: 'received value' }));
}

const booleans = [true, false].map((one) => ({
  label: String(one),
  detail: 'value',
  text: String(one),
}));

function quotedOffer(value: string): Offer {
  return { label: value, detail: 'value', text: showText(value) };
}

function valuesOf(field: Field | undefined, context: Context): Offer[] {
  if (field?.name === 'Collection/Name') {
    return publishedCollections
      .toSorted()
      .map((name) => ({ ...quotedOffer(name), detail: 'collection' }));
  }
  if (field?.type === 'boolean') return booleans;
  return field?.type === 'date' ? dateOffers(context) : [];
}

/** Starts of days, in UTC. */
function dateOffers({ nowUs }: Context): Offer[] {
  const todayUs = nowUs - (nowUs % dayUs);
  const days = [
    [0, 'today, 00:00 UTC'],
    [1, 'yesterday, 00:00 UTC'],
    [7, '7 days ago'],
    [30, '30 days ago'],
  ] as const;
  return days.map(([back, detail]) => {
    const text = `${formatDateUs(todayUs - back * dayUs).slice(0, 19)}Z`;
    return { label: text, detail, text };
  });
}
