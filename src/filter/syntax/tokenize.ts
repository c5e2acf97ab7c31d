/** Cuts the text of a filter into tokens, one at a time, each in time linear in its length. */
import type { Span } from '../finding.ts';

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
export function tokenAt(text: string, place: number): Token {
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
