/** Splits the text of a filter into tokens, and records the span of each part of the tree. */
import { readDateUs } from '../core/terms/dates.ts';
import { findField } from './fields.ts';
import type { ComparisonOperator, FilterTree, Literal } from './filter-tree.ts';
import {
  type Fault,
  type FilterFinding,
  FilterSyntaxError,
  findingAt,
  quoted,
  type Span,
} from './finding.ts';
import { describeUnexpected, undocumentedForm } from './hints.ts';
import { showText } from './print.ts';

// Size limits, so that no filter can block the program or exhaust its stack.

/**
 * Maximum length, in UTF-16 units. The catalogue documents no limit; the longest recorded filter has 1,812. A
 * coastline with thousands of points still fits.
 */
export const filterLengthMax = 100_000;

/**
 * Maximum nesting of parentheses, including those that the canonical form adds. Each level takes a few stack frames;
 * real filters have up to nine levels (facts, filters 2).
 */
export const filterDepthMax = 100;

/** Maximum number of conditions and literals of `in`. Each makes evaluation and the generated SQL slower. */
export const filterTermsMax = 5_000;

/**
 * `word`: a name, path or keyword. `text`: a string in single quotes. `number` and `date`: without quotes. `symbol`:
 * parenthesis, comma, colon or equals sign. `odd`: anything else. `end`: the end of the filter.
 */
export interface Token extends Span {
  readonly kind: 'word' | 'text' | 'number' | 'date' | 'symbol' | 'odd' | 'end';
  /** As written, including quotes. */
  readonly raw: string;
}

/** Spans of the parts of a condition that are not objects of the tree. */
export interface ConditionParts {
  /** The property path. */
  field?: Span;
  operator?: Span;
  /** The string argument of a function. */
  text?: Span;
  /** The attribute name, in quotes. */
  name?: Span;
  /** The attribute type, and the type that its value is cast to. */
  kind?: Span;
  valueKind?: Span;
  /** The number of the spatial reference system. */
  srid?: Span;
}

export class Cursor {
  readonly text: string;
  /** Spans of nodes, literals, geometries and positions, by object identity. */
  readonly spans = new Map<object, Span>();
  readonly parts = new Map<object, ConditionParts>();
  readonly warnings: FilterFinding[] = [];
  /** Nodes that are directly in parentheses. */
  readonly parenthesised = new Set<object>();
  /** The end of the last consumed token. */
  lastEnd = 0;
  /** Number of open parentheses. */
  depth = 0;
  #terms = 0;
  #next: Token;
  #second: Token | null = null;

  constructor(text: string) {
    this.text = text;
    this.#next = tokenAt(text, 0);
  }

  /** Returns the next token without consuming it. */
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

  /** Consumes the symbol; if it is not next, fails with `fault`. */
  takeSymbol(raw: string, fault?: Partial<Fault>): Token {
    if (!this.isSymbol(raw)) this.failUnexpected({ expected: `\`${raw}\``, ...fault });
    return this.take();
  }

  /** Compares the next token with a keyword, ignoring case. */
  isKeyword(keyword: string): boolean {
    return this.#next.kind === 'word' && this.#next.raw.toLowerCase() === keyword.toLowerCase();
  }

  /** Consumes the next token, a keyword, and checks its spelling. */
  takeKeyword(keyword: string): Token {
    const token = this.take();
    this.checkSpelling(token, keyword);
    return token;
  }

  /** Consumes the keyword; if it is not next, fails with `fault`. */
  requireKeyword(keyword: string, fault: Partial<Fault>): void {
    if (!this.isKeyword(keyword)) this.failUnexpected(fault);
    this.takeKeyword(keyword);
  }

  /** Consumes the next token if it is one of the keywords, and returns the keyword. */
  takeOneOf<Keyword extends string>(keywords: readonly Keyword[]): Keyword | undefined {
    const found = keywords.find((keyword) => this.isKeyword(keyword));
    if (found !== undefined) this.takeKeyword(found);
    return found;
  }

  /** Warns about a keyword in another case than documented. */
  checkSpelling(span: Span, keyword: string): void {
    const written = this.text.slice(span.start, span.end);
    if (written === keyword) return;
    const message = `The documented spelling of \`${written}\` is \`${keyword}\`; the catalogue may distinguish upper and lower case.`;
    this.warn(span, { code: 'capitals', message, hint: `Write \`${keyword}\`.` });
  }

  warn(span: Span, fault: Fault): void {
    this.warnings.push(findingAt('warning', span, fault));
  }

  fail(span: Span, fault: Fault): never {
    throw new FilterSyntaxError(span, fault);
  }

  /** Fails at the next token. A known mistake in the token takes precedence over `fault`. */
  failUnexpected(fault: Partial<Fault> = {}): never {
    this.fail(this.#next, describeUnexpected(this.#next, fault));
  }

  /** Records the span of a condition, and counts it; each literal of `in` counts as one. */
  add<Node extends FilterTree>(node: Node, start: number, parts: ConditionParts): Node {
    const span = { start, end: this.lastEnd };
    this.#terms += node.node === 'in' ? node.literals.length : 1;
    if (this.#terms > filterTermsMax) {
      const message = `The filter has more than ${filterTermsMax} conditions.`;
      this.fail(span, {
        code: 'too-many-conditions',
        message,
        hint: 'Split it into several filters.',
      });
    }
    this.spans.set(node, span);
    this.parts.set(node, parts);
    return node;
  }
}

const whitespace = /[ \t\r\n]*/y;

// Includes hyphens, for names without quotes: SENTINEL-2.
const word = /[\p{L}_@$][\p{L}\p{N}_.@$/-]*/uy;

// Numbers, dates, and ids without quotes: 79d7807b-66e5-41d2-a586-1628eb82c3e0.
const numeral = /[+-]?\.?\d[\p{L}\p{N}_.:+-]*/uy;
const symbol = /[(),:=](?!=)/y;

// Operators and quotes of other languages, matched completely for the finding.
const foreign = /==|!=|<>|<=|>=|&&|\|\||%[0-9a-f]{2}|./isuy;
const number = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
export const dateLiteral =
  /^\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?$/;

/** Closing quote for each unsupported opening quote. */
const wrongQuotes: Readonly<Record<string, string>> = { '"': '"', '“': '”', '‘': '’', '`': '`' };

/** Returns the token at or after a position, in time linear in its length. */
function tokenAt(text: string, offset: number): Token {
  const match = (pattern: RegExp, from: number) => {
    pattern.lastIndex = from;
    return pattern.exec(text)?.[0] ?? '';
  };
  const start = offset + match(whitespace, offset).length;
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
    const kind = number.test(digits) ? 'number' : dateLiteral.test(digits) ? 'date' : 'odd';
    return token(kind, start + digits.length);
  }
  if (match(symbol, start) !== '') return token('symbol', start + 1);
  const raw = match(foreign, start);
  const closing = wrongQuotes[raw];
  const end = closing === undefined ? -1 : text.indexOf(closing, start + 1);
  return token('odd', end < 0 ? start + raw.length : end + 1);
}

/** Position after the closing quote; null if there is none. A doubled quote is one quote of the string. */
function endOfText(text: string, start: number): number | null {
  for (let offset = start + 1; ; ) {
    const quote = text.indexOf("'", offset);
    if (quote < 0) return null;
    if (text[quote + 1] !== "'") return quote + 1;
    offset = quote + 2;
  }
}

/** Removes the quotes of a string literal. */
export function unquoted(raw: string): string {
  return raw.slice(1, -1).replaceAll("''", "'");
}

const operators: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];

/** An operator with its span and its literal, or `in` with its list. */
interface Operation {
  readonly span: Token;
  readonly operator: ComparisonOperator | 'in';
  readonly literals: readonly [Literal, ...Literal[]];
}

/**
 * `isId`: accepts a GUID without quotes, as two public clients write it. `ofUnknown`: the word before, if it is no
 * property, such as a part of a name.
 */
export function parseOperation(
  cursor: Cursor,
  { isId = false, ofUnknown = null }: { isId?: boolean; ofUnknown?: string | null } = {},
): Operation {
  const span = cursor.peek();
  const operator = cursor.takeOneOf([...operators, 'in']);
  if (operator === undefined) {
    return cursor.failUnexpected({
      code: 'missing-operator',
      message: 'An operator is missing.',
      expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
      hint: operatorHint(span, ofUnknown),
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

/** Explains a single word, such as a part of a name. */
function operatorHint({ kind, raw }: Token, ofUnknown: string | null): string | null {
  const isAlone = kind === 'end' || /^(?:and|or)$/i.test(raw);
  if (!isAlone || !/^[\w.-]{1,60}$/.test(ofUnknown ?? '')) return null;
  return `To search names: contains(Name,'${ofUnknown}')`;
}

const missingLiteral = {
  code: 'missing-value',
  message: 'A literal is missing.',
  expected: 'a string in single quotes, a number, a date, true or false',
} as const;

const dateForm = 'a date such as 2024-05-01T00:00:00.000Z';

/** Form of product ids. */
export const guid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function parseLiteral(cursor: Cursor, isId: boolean): Literal {
  const token = cursor.peek();
  const literal = isId && guid.test(token.raw) ? bareId(cursor) : literalOf(cursor, token);
  cursor.spans.set(literal, { start: token.start, end: token.end });
  return literal;
}

function bareId(cursor: Cursor): Literal {
  const token = cursor.take();
  const hint = `Write ${quoted(showText(token.raw))}.`;
  cursor.warn(token, undocumentedForm('An id is written without quotes.', hint));
  return { type: 'text', value: token.raw };
}

function literalOf(cursor: Cursor, token: Token): Literal {
  const { kind, raw } = token;
  if (kind === 'text') return { type: 'text', value: unquoted(cursor.take().raw) };
  if (kind === 'number') {
    const value = Number(cursor.take().raw);
    if (Number.isFinite(value)) return { type: 'number', value };
    const message = `${quoted(raw)} is out of range.`;
    return cursor.fail(token, { code: 'invalid-number', message });
  }
  if (kind === 'date') {
    const us = readDateUs(cursor.take().raw);
    if (us !== null) return { type: 'date', us };
    const message = `${quoted(raw)} is not a valid date or time of the years 0000 to 9999, UTC.`;
    return cursor.fail(token, { code: 'invalid-date', message, expected: dateForm });
  }
  const truth = cursor.takeOneOf(['true', 'false']);
  if (truth !== undefined) return { type: 'boolean', value: truth === 'true' };
  if (kind === 'word') failWord(cursor, token);
  if (kind === 'odd' && /^[\w.:+-]{2,}$/.test(raw)) failNumeral(cursor, token);
  return cursor.failUnexpected(missingLiteral);
}

function failWord(cursor: Cursor, token: Token): never {
  const { raw, start, end } = token;
  const value = cursor.peekSecond();
  if (value.kind === 'text' && value.start === end) {
    const message = `\`${raw}'…'\` is syntax of the former Copernicus hub (OData 2).`;
    const hint = `Write only the literal: ${quoted(value.raw)}`;
    cursor.fail({ start, end: value.end }, { code: 'retired-form', message, hint });
  }
  if (/^(?:and|or|null)$/i.test(raw)) cursor.failUnexpected(missingLiteral);
  failUnquoted(cursor, token);
}

function failUnquoted(cursor: Cursor, token: Token): never {
  const message = `${quoted(token.raw)} is not a literal.`;
  const { expected } = missingLiteral;
  if (findField(token.raw) !== undefined) {
    cursor.fail(token, { code: 'not-comparable', message, expected });
  }
  const hint = `Put strings in single quotes: ${quoted(showText(token.raw))}`;
  cursor.fail(token, { code: 'unquoted-text', message, expected, hint });
}

/** Fails for an invalid number or date, or an id without quotes. */
function failNumeral(cursor: Cursor, token: Token): never {
  const isDate = /^\d{4}-\d\d?(?:-|$)/.test(token.raw);
  if (!isDate && !/^[+-]?[\d.]+$/.test(token.raw)) failUnquoted(cursor, token);
  const message = `${quoted(token.raw)} is not a valid ${isDate ? 'date' : 'number'}.`;
  if (isDate) cursor.fail(token, { code: 'invalid-date', message, expected: dateForm });
  cursor.fail(token, { code: 'invalid-number', message, expected: 'a number such as 20 or 0.5' });
}
