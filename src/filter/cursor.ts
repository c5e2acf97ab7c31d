/** Walks along the tokens of a filter, and notes where each part of the tree stood. */
import type { FilterTree } from '../domain/filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, type Span } from './finding.ts';

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
    if (token.raw !== keyword) this.warnCapitals(token, token.raw, keyword);
    return token;
  }

  warnCapitals(span: Span, written: string, keyword: string): void {
    const message = `\`${written}\` is written \`${keyword}\`. Nothing says that the catalogue takes it in other letters.`;
    this.warn(span, { code: 'capitals', message, hint: `Write \`${keyword}\`.` });
  }

  warn({ start, end }: Span, fault: Fault): void {
    this.warnings.push({ severity: 'warning', ...fault, start, end });
  }

  fail({ start, end }: Span, fault: Fault): never {
    throw new FilterSyntaxError({ severity: 'error', ...fault, start, end });
  }

  /** The next token cannot stand here. What it looks like counts for more than what was expected. */
  failUnexpected(fault: Partial<Fault> = {}): never {
    const token = this.#next;
    this.fail(token, { ...describeUnexpected(this.text, token, fault) });
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

  /** Goes one level down, at an opening parenthesis. */
  open(span: Span): void {
    this.depth += 1;
    this.deepen(span, this.depth);
  }

  close(): void {
    this.depth -= 1;
  }

  /** Notes a level that the canonical text of the filter has. */
  deepen(span: Span, depth: number): void {
    if (depth > filterDepthMax) {
      const message = `The filter is nested deeper than ${filterDepthMax} levels.`;
      this.fail(span, {
        code: 'too-deep',
        message,
        hint: 'Leave out parentheses that say nothing.',
      });
    }
    this.deepest = Math.max(this.deepest, depth);
  }
}

/**
 * `word`: a name, a path or a keyword. `text`: in single quotes. `number` and `date`: not in quotes.
 * `symbol`: parentheses, comma, colon, equals sign. `odd`: what no filter can hold. `end`: the end.
 */
export interface Token extends Span {
  readonly kind: 'word' | 'text' | 'number' | 'date' | 'symbol' | 'odd' | 'end';
  /** As written, quotes included. */
  readonly raw: string;
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

/** The token at or after a place. */
function tokenAt(text: string, place: number): Token {
  const start = place + (match(blanks, text, place)?.length ?? 0);
  if (start >= text.length) return token('end', text, text.length, text.length);
  if (text[start] === "'") return textToken(text, start);
  const name = match(word, text, start);
  if (name !== null) return token('word', text, start, start + name.length);
  const digits = match(numeral, text, start);
  if (digits !== null) return token(numeralKind(digits), text, start, start + digits.length);
  if (match(symbol, text, start) !== null) return token('symbol', text, start, start + 1);
  return oddToken(text, start);
}

/** What a text in quotes says: two quotes in it stand for one. */
export function unquoted(raw: string): string {
  return raw.slice(1, -1).replaceAll("''", "'");
}

function numeralKind(raw: string): Token['kind'] {
  if (number.test(raw)) return 'number';
  return date.test(raw) ? 'date' : 'odd';
}

function textToken(text: string, start: number): Token {
  for (let place = start + 1; ; ) {
    const quote = text.indexOf("'", place);
    if (quote < 0) return token('odd', text, start, start + 1);
    if (text[quote + 1] !== "'") return token('text', text, start, quote + 1);
    place = quote + 2;
  }
}

function oddToken(text: string, start: number): Token {
  const raw = match(foreign, text, start) ?? '';
  const closing = wrongQuotes[raw];
  const end = closing === undefined ? -1 : text.indexOf(closing, start + 1);
  return token('odd', text, start, end < 0 ? start + raw.length : end + 1);
}

function token(kind: Token['kind'], text: string, start: number, end: number): Token {
  return { kind, raw: text.slice(start, end), start, end };
}

function match(pattern: RegExp, text: string, place: number): string | null {
  pattern.lastIndex = place;
  return pattern.exec(text)?.[0] ?? null;
}

/**
 * UTF-16 units of text. No limit of the catalogue is documented, the longest recorded filter has
 * 1,812; a coastline with thousands of points still fits.
 */
export const filterLengthMax = 100_000;

/**
 * Parentheses within parentheses, also those that the canonical text adds. Each level takes a few
 * calls of the stack; real filters have up to nine (facts, filters 2).
 */
export const filterDepthMax = 100;

/**
 * Conditions joined by `and` and `or`, and values of `in`. Each costs the evaluation, and the SQL that is
 * made of it.
 */
export const filterTermsMax = 5_000;

export type Fault = Omit<FilterFinding, 'severity' | keyof Span>;

/** A part of the filter for a message, cut when it is long. */
export function named(raw: string): string {
  return `\`${raw.length > 60 ? `${raw.slice(0, 57)}…` : raw}\``;
}

/** A form whose meaning is plain, though nothing shows that the catalogue accepts it. */
export function undocumentedForm(what: string, hint: string): Fault {
  const message = `${what} Accepted here; the catalogue's answer is not known.`;
  return { code: 'undocumented-form', message, hint };
}

/** An operator that works here, though nothing shows that the catalogue has it. */
export function undocumentedOperator(operator: 'ne' | 'in', hint: string): Fault {
  const message = `\`${operator}\` is not in the catalogue's documentation; it may be refused.`;
  return { code: 'undocumented-operator', message, hint };
}

/** What to write for `in`. */
export const insteadOfIn = 'Write comparisons with `eq`, joined by `or`.';

/** Operators of other languages, and what they are called here. */
const operators: Readonly<Record<string, string>> = {
  '=': 'eq',
  '==': 'eq',
  '!=': 'ne',
  '<>': 'ne',
  '<': 'lt',
  '<=': 'le',
  '>': 'gt',
  '>=': 'ge',
  '&&': 'and',
  '||': 'or',
  '|': 'or',
  '!': 'not',
};

/** The finding for a token that cannot stand where it stands; `fault` is what is known of the place. */
function describeUnexpected(text: string, token: Token, fault: Partial<Fault>): Fault {
  const slip = operatorFault(text, token) ?? (token.kind === 'odd' ? oddFault(text, token) : null);
  const message =
    token.kind === 'end' ? 'The filter ends too early.' : `${named(token.raw)} cannot stand here.`;
  return { code: 'unexpected', message, ...fault, ...slip };
}

function operatorFault(text: string, token: Token): Fault | null {
  const word = operators[token.raw];
  if (word !== undefined) {
    const message = `${named(token.raw)} is not an operator of the filter language.`;
    return { code: 'wrong-operator', message, hint: `Write \`${word}\`.` };
  }
  if (token.raw !== '&') return null;
  // The filter was cut out of a URL, together with the option after it.
  if (/^&\s*\$?\w+=/.test(text.slice(token.start, token.start + 40))) {
    const message = 'Another query option begins here.';
    return { code: 'not-a-filter', message, hint: 'Leave out all that follows the filter.' };
  }
  const message = '`&` is not an operator of the filter language.';
  return { code: 'wrong-operator', message, hint: 'Write `and`.' };
}

function oddFault(text: string, token: Token): Fault {
  const { raw } = token;
  if (raw === "'") {
    const hint = 'Close it with another. A quote inside a text is doubled.';
    return { code: 'unclosed-text', message: 'This quote is never closed.', hint };
  }
  if (/^["“”‘’`´]/.test(raw)) return quotesFault(raw);
  if (/^(?:%.+|\+)$/s.test(raw)) {
    const message = `${named(raw)} belongs to a URL: the filter is still encoded.`;
    const hint = 'Decode it first: %20 is a blank, %27 a quote.';
    return { code: 'not-a-filter', message, hint };
  }
  if (/^[[\]{}]$/.test(raw)) {
    const hint = 'Ranges are two conditions, `ge` and `le`, joined by `and`.';
    return { code: 'wrong-character', message: `${named(raw)} cannot stand here.`, hint };
  }
  if (raw === ';') {
    const message = 'A filter ends without a semicolon.';
    return { code: 'wrong-character', message, hint: 'Leave it out.' };
  }
  return characterFault(text, token);
}

function quotesFault(raw: string): Fault {
  const inner = raw.slice(1, raw.length > 1 ? -1 : undefined).replaceAll("'", "''");
  const message = `Texts stand in single quotes, not in ${raw[0]}.`;
  const hint = raw.length > 1 ? `Write ${named(`'${inner}'`)}.` : "Write '.";
  return { code: 'wrong-quotes', message, hint };
}

function characterFault(text: string, token: Token): Fault {
  const code = text.codePointAt(token.start) ?? 0;
  const unicode = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  if (/^[\p{White_Space}\p{Cf}]/u.test(token.raw)) {
    const message = `An invisible character (${unicode}) stands here that is no plain blank.`;
    return { code: 'wrong-character', message, hint: 'Put a plain blank in its place.' };
  }
  const shown = token.raw.length > 1 || code > 32 ? named(token.raw) : unicode;
  return { code: 'wrong-character', message: `${shown} cannot stand here.` };
}
