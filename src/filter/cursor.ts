/** Cuts the text of a filter into tokens, walks along them, and notes where each part of the tree stood. */
import type { ComparisonOperator, FilterTree, Literal } from '../domain/filter-tree.ts';
import { findField } from './fields.ts';
import {
  type Fault,
  type FilterFinding,
  FilterSyntaxError,
  findingAt,
  named,
  type Span,
} from './finding.ts';
import { describeUnexpected, entryOf, undocumentedForm } from './hints.ts';
import { showText } from './print.ts';
import { readFilterDate } from './values.ts';

// How large a filter may be, so that no text can stall the program or exhaust its stack.

/**
 * Maximum UTF-16 units of text. No limit of the catalogue is documented, the longest recorded filter has 1,812; a
 * coastline with thousands of points still fits.
 */
export const filterLengthMax = 100_000;

/**
 * Maximum of parentheses within parentheses, also those that the canonical text adds. Each level takes a few calls of
 * the stack; real filters have up to nine (facts, filters 2).
 */
export const filterDepthMax = 100;

/** Maximum of conditions and values of `in`. Each costs the evaluation, and the SQL that is made of it. */
export const filterTermsMax = 5_000;

/**
 * `word`: a name, a path or a keyword. `text`: in single quotes. `number` and `date`: not in quotes. `symbol`:
 * parentheses, comma, colon, equals sign. `odd`: what no filter can hold. `end`: the end.
 */
export interface Token extends Span {
  readonly kind: 'word' | 'text' | 'number' | 'date' | 'symbol' | 'odd' | 'end';
  /** As written, quotes included. */
  readonly raw: string;
}

/** Where the parts of a condition stand that are no objects of their own in the tree. */
export interface ConditionParts {
  /** The field's path. */
  field?: Span;
  operator?: Span;
  /** The text of a function. */
  text?: Span;
  /** An attribute's name, in quotes. */
  name?: Span;
  /** The kind that an attribute is stored as, and the kind that its value is read as. */
  kind?: Span;
  valueKind?: Span;
  /** The number of a reference system. */
  srid?: Span;
}

export class Cursor {
  readonly text: string;
  /** Nodes, literals, geometries and positions, by identity. */
  readonly spans = new Map<object, Span>();
  readonly parts = new Map<object, ConditionParts>();
  readonly warnings: FilterFinding[] = [];
  /** Nodes that stand in parentheses of their own. */
  readonly parenthesised = new Set<object>();
  /** The end of the last token taken. */
  lastEnd = 0;
  /** Parentheses that are open, and the most that the canonical text of what was read has. */
  depth = 0;
  deepest = 0;
  #terms = 0;
  #next: Token;
  #second: Token | null = null;

  constructor(text: string) {
    this.text = text;
    this.#next = tokenAt(text, 0);
  }

  /** The next token, which stays the next. */
  peek(): Token {
    return this.#next;
  }

  /** The token after the next. */
  peekSecond(): Token {
    this.#second ??= tokenAt(this.text, this.#next.end);
    return this.#second;
  }

  take(): Token {
    const token = this.#next;
    this.#next = this.peekSecond();
    this.#second = null;
    this.lastEnd = token.end;
    return token;
  }

  isSymbol(raw: string): boolean {
    return this.#next.kind === 'symbol' && this.#next.raw === raw;
  }

  /** Takes the symbol, which must be next; `fault` says what it means that it is not. */
  takeSymbol(raw: string, fault?: Partial<Fault>): Token {
    if (!this.isSymbol(raw)) this.failUnexpected({ expected: `\`${raw}\``, ...fault });
    return this.take();
  }

  /** True when the next token is this keyword, in any case. */
  isKeyword(keyword: string): boolean {
    return this.#next.kind === 'word' && this.#next.raw.toLowerCase() === keyword.toLowerCase();
  }

  /** Takes the next token, a keyword; warns unless it is written as it should be. */
  takeKeyword(keyword: string): Token {
    const token = this.take();
    this.checkSpelling(token, keyword);
    return token;
  }

  /** Takes the next token if it is one of the keywords; gives that one. */
  takeOneOf<Keyword extends string>(keywords: readonly Keyword[]): Keyword | undefined {
    const found = keywords.find((keyword) => this.isKeyword(keyword));
    if (found !== undefined) this.takeKeyword(found);
    return found;
  }

  /** Warns of a keyword in letters of another case. */
  checkSpelling(span: Span, keyword: string): void {
    const written = this.text.slice(span.start, span.end);
    if (written === keyword) return;
    const message = `\`${written}\` is written \`${keyword}\`. Nothing says that the catalogue takes it in other letters.`;
    this.warn(span, { code: 'capitals', message, hint: `Write \`${keyword}\`.` });
  }

  warn(span: Span, fault: Fault): void {
    this.warnings.push(findingAt('warning', span, fault));
  }

  fail(span: Span, fault: Fault): never {
    throw new FilterSyntaxError(span, fault);
  }

  /** The next token cannot stand here. What it looks like counts for more than what was expected. */
  failUnexpected(fault: Partial<Fault> = {}): never {
    this.fail(this.#next, describeUnexpected(this.text, this.#next, fault));
  }

  /** Counts a condition of the filter, each value of `in` as one, and notes where it stood. */
  add<Node extends FilterTree>(node: Node, start: number, parts: ConditionParts): Node {
    const span = { start, end: this.lastEnd };
    this.#terms += node.node === 'in' ? node.literals.length : 1;
    if (this.#terms > filterTermsMax) {
      const message = `The filter has more than ${filterTermsMax} conditions.`;
      this.fail(span, { code: 'too-many-conditions', message, hint: 'Split it into several.' });
    }
    this.spans.set(node, span);
    this.parts.set(node, parts);
    return node;
  }

  /** Notes a level that the canonical text of the filter has. */
  deepen(span: Span, depth: number): void {
    if (depth > filterDepthMax) {
      const message = `The filter is nested deeper than ${filterDepthMax} levels.`;
      const hint = 'Leave out parentheses that say nothing.';
      this.fail(span, { code: 'too-deep', message, hint });
    }
    this.deepest = Math.max(this.deepest, depth);
  }
}

const blanks = /[ \t\r\n]*/y;

// With the hyphens of names that somebody forgot to quote: SENTINEL-2.
const word = /[\p{L}_@$][\p{L}\p{N}_.@$/-]*/uy;

// Numbers, dates, and what begins like one: 79d7807b-66e5-41d2-a586-1628eb82c3e0.
const numeral = /[+-]?\.?\d[\p{L}\p{N}_.:+-]*/uy;
const symbol = /[(),:=](?!=)/y;

// Operators and quotes of other languages, so that a finding can name them whole.
const foreign = /==|!=|<>|<=|>=|&&|\|\||%[0-9a-f]{2}|./isuy;
const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const date = /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?$/;

/** The closing mark for each opening one that is not a single quote. */
const wrongQuotes: Readonly<Record<string, string>> = { '"': '"', '“': '”', '‘': '’', '`': '`' };

/** The token at or after a place, in time linear in its length. */
function tokenAt(text: string, place: number): Token {
  const match = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from;
    return pattern.exec(text)?.[0] ?? '';
  };
  const start = place + match(blanks, place).length;
  const token = (kind: Token['kind'], end: number): Token => {
    return { kind, raw: text.slice(start, end), start, end };
  };
  if (start >= text.length) return { kind: 'end', raw: '', start: text.length, end: text.length };
  if (text[start] === "'") {
    const end = endOfText(text, start);
    return end === null ? token('odd', start + 1) : token('text', end);
  }
  const name = match(word, start);
  if (name !== '') return token('word', start + name.length);
  const digits = match(numeral, start);
  if (digits !== '') {
    const kind = number.test(digits) ? 'number' : date.test(digits) ? 'date' : 'odd';
    return token(kind, start + digits.length);
  }
  if (match(symbol, start) !== '') return token('symbol', start + 1);
  const raw = match(foreign, start);
  const closing = wrongQuotes[raw];
  const end = closing === undefined ? -1 : text.indexOf(closing, start + 1);
  return token('odd', end < 0 ? start + raw.length : end + 1);
}

/** The place behind the closing quote; null where there is none. Two quotes are one of the text. */
function endOfText(text: string, start: number): number | null {
  for (let place = start + 1; ; ) {
    const quote = text.indexOf("'", place);
    if (quote < 0) return null;
    if (text[quote + 1] !== "'") return quote + 1;
    place = quote + 2;
  }
}

/** What a text in quotes says. */
export function unquoted(raw: string): string {
  return raw.slice(1, -1).replaceAll("''", "'");
}

const operators: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];

/** Words that people write for an operator. */
const slips: Readonly<Record<string, string>> = {
  is: 'Write `eq`.',
  equals: 'Write `eq`.',
  equal: 'Write `eq`.',
  neq: 'Write `ne`.',
  lte: 'Write `le`.',
  gte: 'Write `ge`.',
  not: "Put `not` before the whole condition: not (Name eq '…').",
  like: "Write contains(Name,'…'), startswith(Name,'…') or endswith(Name,'…').",
  contains: "Write contains(Name,'…').",
  startswith: "Write startswith(Name,'…').",
  endswith: "Write endswith(Name,'…').",
  between: 'Write two conditions, with `ge` and `le`, joined by `and`.',
  has: 'Write `eq`.',
};

/** An operator, with where it stands, and its value; or `in` and its list. */
interface Operation {
  readonly span: Token;
  readonly operator: ComparisonOperator | 'in';
  readonly literals: readonly [Literal, ...Literal[]];
}

/** `isId`: a GUID may stand without quotes, as two public clients write it. */
export function parseOperation(cursor: Cursor, isId = false): Operation {
  const span = cursor.peek();
  const operator = cursor.takeOneOf([...operators, 'in']);
  if (operator === undefined) {
    return cursor.failUnexpected({
      code: 'missing-operator',
      message: 'A comparison is missing here.',
      expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
      hint: span.kind === 'word' ? entryOf(slips, span.raw.toLowerCase()) : null,
    });
  }
  if (operator !== 'in') return { span, operator, literals: [parseLiteral(cursor, isId)] };
  cursor.takeSymbol('(', { expected: "a list of values such as ('a','b')" });
  const literals: [Literal, ...Literal[]] = [parseLiteral(cursor, isId)];
  while (cursor.isSymbol(',')) {
    cursor.take();
    literals.push(parseLiteral(cursor, isId));
  }
  cursor.takeSymbol(')', { code: 'missing-parenthesis', expected: '`,` or `)`' });
  return { span, operator, literals };
}

const wanted = {
  code: 'missing-value',
  message: 'A value is missing here.',
  expected: 'a text in single quotes, a number, a date, true or false',
} as const;

const dateForm = 'a date such as 2024-05-01T00:00:00.000Z';

/** The form of ids. */
export const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function parseLiteral(cursor: Cursor, isId: boolean): Literal {
  const token = cursor.peek();
  const literal = isId && guid.test(token.raw) ? bareId(cursor) : literalOf(cursor, token);
  cursor.spans.set(literal, { start: token.start, end: token.end });
  return literal;
}

function bareId(cursor: Cursor): Literal {
  const token = cursor.take();
  const hint = `Write ${named(showText(token.raw))}.`;
  cursor.warn(token, undocumentedForm('The id has no quotes.', hint));
  return { type: 'text', value: token.raw };
}

function literalOf(cursor: Cursor, token: Token): Literal {
  const { kind, raw } = token;
  if (kind === 'text') return { type: 'text', value: unquoted(cursor.take().raw) };
  if (kind === 'number') {
    const value = Number(cursor.take().raw);
    if (Number.isFinite(value)) return { type: 'number', value };
    const message = `${named(raw)} is beyond the numbers that can be compared.`;
    return cursor.fail(token, { code: 'invalid-number', message });
  }
  if (kind === 'date') {
    const us = readFilterDate(cursor.take().raw);
    if (us !== null) return { type: 'date', us };
    const message = `${named(raw)} is not a date of the calendar, or not a time of the day.`;
    return cursor.fail(token, { code: 'invalid-date', message, expected: dateForm });
  }
  const truth = cursor.takeOneOf(['true', 'false']);
  if (truth !== undefined) return { type: 'boolean', value: truth === 'true' };
  if (kind === 'word') failWord(cursor, token);
  if (kind === 'odd' && /^[\w.:+-]{2,}$/.test(raw)) failNumeral(cursor, token);
  return cursor.failUnexpected(wanted);
}

/** Words that stand right before a quoted value in the language of the retired hub (OData 2). */
const prefixes = /^(?:datetime|datetimeoffset|guid|time|duration|binary|geometry|geography)$/i;

function failWord(cursor: Cursor, token: Token): never {
  const { raw, start, end } = token;
  const value = cursor.peekSecond();
  if (prefixes.test(raw) && value.kind === 'text' && value.start === end) {
    const bare = named(/^date/i.test(raw) ? unquoted(value.raw) : value.raw);
    const message = `\`${raw}'…'\` is a form of the retired hub.`;
    const hint = `Write the value alone: ${bare}`;
    cursor.fail({ start, end: value.end }, { code: 'retired-form', message, hint });
  }
  if (/^null$/i.test(raw)) {
    const message = 'null is not a value here: an absent value cannot be asked for.';
    cursor.fail(token, { ...wanted, message });
  }
  if (/^(?:and|or)$/i.test(raw)) cursor.failUnexpected(wanted);
  failUnquoted(cursor, token);
}

function failUnquoted(cursor: Cursor, token: Token): never {
  const fault = { message: `${named(token.raw)} is not a value.`, expected: wanted.expected };
  if (findField(token.raw) !== undefined) {
    const hint = 'A field can only be compared with a value.';
    cursor.fail(token, { code: 'not-comparable', ...fault, hint });
  }
  const hint = `Put texts in single quotes: ${named(showText(token.raw))}`;
  cursor.fail(token, { code: 'unquoted-text', ...fault, hint });
}

/** Digits that are neither a number nor a date: a slip in one of these, or an id without quotes. */
function failNumeral(cursor: Cursor, token: Token): never {
  if (/^\d{4}-\d\d?(?:-|$)/.test(token.raw)) {
    const message = `${named(token.raw)} is not a date that can be read.`;
    const hint =
      'A time has hours, minutes and seconds, then Z or an offset such as +02:00, or nothing.';
    cursor.fail(token, { code: 'invalid-date', message, expected: dateForm, hint });
  }
  if (/^[+-]?[\d.]+$/.test(token.raw)) {
    const message = `${named(token.raw)} is not a number.`;
    cursor.fail(token, { code: 'invalid-number', message, expected: 'a number such as 20 or 0.5' });
  }
  failUnquoted(cursor, token);
}
