/** Walks along the tokens of a filter, and notes where each part of the tree stood. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, type Span } from '../finding.ts';
import { describeUnexpected, type Fault } from '../hints/unexpected.ts';
import { filterDepthMax, filterTermsMax } from '../limits.ts';
import { type Token, tokenAt } from './tokenize.ts';

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
