/** Splits texts into tokens; for filters, also collects findings at their position. */
import { readDateUs } from '../core/terms/dates.ts';
import type { Entity, Literal } from './filter-tree.ts';
import {
  type Fault,
  type FilterFinding,
  FilterSyntaxError,
  findingAt,
  quoted,
  type Span,
} from './finding.ts';

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

interface Token<Kind> extends Span {
  readonly kind: Kind | 'end';
  /** As written, including quotes. */
  readonly raw: string;
}

/** Tokens of a text, read when they are needed. */
export class Tokens<Kind extends string> {
  readonly text: string;
  /** The end of the last consumed token. */
  lastEnd = 0;
  readonly #matches: Iterator<RegExpExecArray, undefined>;
  readonly #next: Token<Kind>[] = [];

  /** `form` has a group for each kind, matches every character, and takes linear time; `blank` is skipped. */
  constructor(text: string, form: RegExp) {
    this.text = text;
    this.#matches = text.matchAll(form);
  }

  /** Returns a token without consuming it; 0 is the next one. */
  peek(ahead = 0): Token<Kind> {
    while (this.#next.length <= ahead) this.#next.push(this.#read());
    // It was just read.
    return this.#next[ahead] as Token<Kind>;
  }

  #read(): Token<Kind> {
    for (;;) {
      const { value: match } = this.#matches.next();
      const { length } = this.text;
      if (match === undefined) return { kind: 'end', raw: '', start: length, end: length };
      const groups = Object.entries(match.groups ?? {});
      const kind = groups.find(([, group]) => group !== undefined)?.[0] as Kind | 'blank';
      const [raw] = match;
      if (kind !== 'blank') return { kind, raw, start: match.index, end: match.index + raw.length };
    }
  }

  take(): Token<Kind> {
    const token = this.peek();
    this.#next.shift();
    this.lastEnd = token.end;
    return token;
  }

  /** Compares the next token with a keyword or symbol, ignoring case. */
  is(keyword: string): boolean {
    return this.peek().raw.toLowerCase() === keyword.toLowerCase();
  }

  takeIf(keyword: string): boolean {
    const isNext = this.is(keyword);
    if (isNext) this.take();
    return isNext;
  }
}

const kinds = {
  blank: /[ \t\r\n]+/u,
  text: /'[^']*(?:''[^']*)*'(?!')/u,
  // Includes hyphens, for names without quotes: SENTINEL-2.
  word: /[\p{L}_@$][\p{L}\p{N}_.@$/-]*/u,
  number: /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\p{L}\p{N}_.:+-])/u,
  date: /\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)?(?![\p{L}\p{N}_.:+-])/u,
  // Invalid numbers and dates, and ids without quotes: 79d7807b-66e5-41d2-a586-1628eb82c3e0.
  numeral: /[+-]?\.?\d[\p{L}\p{N}_.:+-]*/u,
  symbol: /[(),:=](?!=)/u,
  // Operators and quotes of other languages, matched completely for the finding.
  odd: /==|!=|<>|<=|>=|&&|\|\||%[0-9a-fA-F]{2}|"[^"]*"|“[^”]*”|‘[^’]*’|`[^`]*`|./u,
};

type TokenKind = keyof typeof kinds;

export type FilterToken = Token<TokenKind>;

const form = new RegExp(
  Object.entries(kinds)
    .map(([kind, { source }]) => `(?<${kind}>${source})`)
    .join('|'),
  'gsu',
);

/** Form of a date in quotes. */
export const dateLiteral = new RegExp(`^${kinds.date.source}$`, 'u');

/** Operators of other languages, and the equivalents in OData. */
const operators: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ...{ '=': 'eq', '==': 'eq', '!=': 'ne', '<>': 'ne', '<': 'lt', '<=': 'le', '>': 'gt' },
    ...{ '>=': 'ge', '&': 'and', '&&': 'and', '|': 'or', '||': 'or', '!': 'not' },
  }),
);

/** Position in the text of a filter, and its findings so far. */
export class Cursor extends Tokens<TokenKind> {
  readonly entity: Entity;
  readonly findings: FilterFinding[] = [];
  /** Number of open parentheses. */
  depth = 0;
  /** True inside an odd number of `not`. */
  isNegated = false;
  /** True after a condition on the collection. */
  hasCollection = false;
  /** Searches in names, which are slow without a condition on the collection. */
  readonly nameSearches: Span[] = [];
  #terms = 0;

  constructor(text: string, entity: Entity) {
    super(text, form);
    this.entity = entity;
  }

  /** Consumes the symbol; if it is not next, fails with `fault`. */
  takeSymbol(raw: string, fault?: Partial<Fault>): FilterToken {
    if (!this.is(raw)) this.failUnexpected({ expected: `\`${raw}\``, ...fault });
    return this.take();
  }

  /** Consumes the next token if it is one of the keywords, and returns the keyword. */
  takeOneOf<Keyword extends string>(keywords: readonly Keyword[]): Keyword | undefined {
    const found = keywords.find((keyword) => this.is(keyword));
    if (found !== undefined) this.checkSpelling(this.take(), found);
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
    this.findings.push(findingAt('warning', span, fault));
  }

  /** Reports a fault after which the rest of the filter can be checked. */
  error(span: Span, fault: Fault): void {
    this.findings.push(findingAt('error', span, fault));
  }

  fail(span: Span, fault: Fault): never {
    throw new FilterSyntaxError(span, fault);
  }

  /** Fails at the next token. A known mistake in the token takes precedence over `fault`. */
  failUnexpected(fault: Partial<Fault> = {}): never {
    const token = this.peek();
    const { kind, raw } = token;
    const operator = operators.get(raw);
    if (operator !== undefined) {
      const message = `${quoted(raw)} is not an operator of the filter language.`;
      this.fail(token, { code: 'wrong-operator', message, hint: `Write \`${operator}\`.` });
    }
    if (raw === "'") {
      const hint = 'Add the closing quote. Inside a string, write two single quotes for one quote.';
      this.fail(token, { code: 'unclosed-text', message: 'The string is not closed.', hint });
    }
    if (/^["“”‘’`´]/.test(raw)) {
      const inner = raw.slice(1, -1).replaceAll("'", "''");
      const message = `Strings need single quotes, not ${raw[0]}.`;
      this.fail(token, { code: 'wrong-quotes', message, hint: `Write ${quoted(`'${inner}'`)}.` });
    }
    const codePoint = raw.codePointAt(0)?.toString(16).padStart(4, '0');
    const shown = /^[\p{White_Space}\p{C}]/u.test(raw) ? `U+${codePoint}` : quoted(raw);
    const what = kind === 'end' ? 'end of the filter' : shown;
    const unexpected = { code: 'unexpected', message: `Unexpected ${what}.` } as const;
    this.fail(token, kind === 'odd' ? { ...fault, ...unexpected } : { ...unexpected, ...fault });
  }

  /** Counts conditions, and the literals of `in`. */
  count(terms: number, start: number): void {
    this.#terms += terms;
    if (this.#terms <= filterTermsMax) return;
    const message = `The filter has more than ${filterTermsMax} conditions.`;
    const hint = 'Split it into several filters.';
    this.fail({ start, end: this.lastEnd }, { code: 'too-many-conditions', message, hint });
  }
}

/** Removes the quotes of a string literal. */
export function unquoted(raw: string): string {
  return raw.slice(1, -1).replaceAll("''", "'");
}

/** Returns the value of a token; null if it is no literal, out of range, or a date that does not exist. */
export function literalOf({ kind, raw }: FilterToken): Literal | null {
  if (kind === 'text') return { type: 'text', value: unquoted(raw) };
  if (kind === 'number' && Number.isFinite(Number(raw)))
    return { type: 'number', value: Number(raw) };
  if (kind === 'word' && /^(?:true|false)$/i.test(raw)) {
    return { type: 'boolean', value: raw.toLowerCase() === 'true' };
  }
  const us = kind === 'date' ? readDateUs(raw) : null;
  return us === null ? null : { type: 'date', us };
}
