/** Reads symbols, words and numbers of well-known text inside the quotes of a filter. */
import type { FilterFinding, Span } from '../finding.ts';
import { named } from '../hints/unexpected.ts';
import type { Cursor } from './cursor.ts';
import type { Token } from './tokenize.ts';

export interface Found extends Span {
  readonly text: string;
}

type Fault = Partial<Pick<FilterFinding, 'message' | 'expected' | 'hint'>>;

const blanks = /[ \t\r\n]*/y;
// No two parts share a digit: it fails after one way along the text.
const number = /[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?(?![\w.])/iy;
const integer = /[+-]?\d{1,15}(?![\w.])/y;
const letters = /[a-z]+/iy;
const anything = /[^\s(),;=']+|[^']/uy;

/** The text between the quotes of a token, and how far it is read; offsets are those of the filter. */
export class WktReader {
  readonly #cursor: Cursor;
  readonly #end: number;
  #place: number;

  constructor(cursor: Cursor, token: Token) {
    this.#cursor = cursor;
    this.#place = token.start + 1;
    this.#end = token.end - 1;
  }

  /** The place of what comes next, behind blanks. */
  skipBlanks(): number {
    blanks.lastIndex = this.#place;
    this.#place += blanks.exec(this.#cursor.text)?.[0].length ?? 0;
    return this.#place;
  }

  word(): Found | null {
    return this.#accept(letters);
  }

  integer(): Found | null {
    return this.#accept(integer);
  }

  number(): Found | null {
    return this.#accept(number);
  }

  next(): string | undefined {
    const place = this.skipBlanks();
    return place < this.#end ? this.#cursor.text[place] : undefined;
  }

  /** Takes the symbol if it comes next. */
  takeIf(symbol: string): boolean {
    if (this.next() !== symbol) return false;
    this.#place += 1;
    return true;
  }

  take(symbol: string, expected = `\`${symbol}\``): void {
    if (!this.takeIf(symbol)) this.fail({ expected });
  }

  /** Notes where an object that is read stood. */
  note<Part extends object>(read: () => Part): Part {
    const start = this.skipBlanks();
    const part = read();
    this.#cursor.spans.set(part, { start, end: this.#place });
    return part;
  }

  /** Fails at the span, or at what comes next. */
  fail(fault: Fault, span?: Span | null): never {
    const at = span ?? this.#upcoming();
    const text = this.#cursor.text.slice(at.start, at.end);
    const message =
      at.start < this.#end ? `${named(text)} cannot stand here.` : 'The geometry ends too early.';
    this.#cursor.fail(at, { code: 'invalid-wkt', message, ...fault });
  }

  #upcoming(): Span {
    const start = this.skipBlanks();
    if (start >= this.#end) return { start: this.#end, end: this.#end + 1 };
    const found = this.#accept(anything);
    // A quote inside the geometry is doubled.
    return found ?? { start, end: start + 2 };
  }

  #accept(pattern: RegExp): Found | null {
    const start = this.skipBlanks();
    pattern.lastIndex = start;
    // No pattern takes a quote, so none reaches beyond the end.
    const text = start < this.#end ? pattern.exec(this.#cursor.text)?.[0] : undefined;
    if (text === undefined) return null;
    this.#place = start + text.length;
    return { text, start, end: this.#place };
  }
}
