/**
 * Parses CQL2 text (OGC 21-065r2, annex B) to the nodes of CQL2 JSON: what a filter may contain is decided by the
 * translation.
 */
import { AppError } from '../../core/terms/app-error.ts';
import { filterDepthMax, filterLengthMax } from '../../filter/cursor.ts';
import { geometryTypes, parseGeometry } from '../../filter/geometry/read-geometry.ts';
import type { Cql2 } from './cql2.ts';

interface Token {
  kind: 'word' | 'quoted' | 'text' | 'number' | 'sign' | 'end';
  text: string;
  at: number;
}

/** In a text, a backslash escapes a quote; LIKE needs the other backslashes. */
const tokenForm =
  /(?<text>'(?:[^'\\]|''|\\.)*')|(?<quoted>"[^"]*")|(?<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?)|(?<word>[\p{L}_:][\p{L}\p{N}_:.]*)|(?<sign><>|<=|>=|[=<>(),+\-*/^%])/isuy;

const kinds = ['text', 'quoted', 'number', 'word', 'sign'] as const;

/** An area of a body of 64 KiB has about 11,000 tokens. */
const tokensMax = 15_000;

const blanks = /\s*/y;

/** Throws `invalid`, with the position of the fault. */
export function parseCql2Text(text: string): Cql2 {
  if (text.length > filterLengthMax) {
    throw new AppError('invalid', `The filter has more than ${filterLengthMax} characters.`);
  }
  const parser = new Parser(text);
  const filter = parser.disjunction(0);
  parser.end();
  return filter;
}

function tokensOf(text: string): Token[] {
  const tokens: Token[] = [];
  let at = 0;
  const match = (form: RegExp) => {
    form.lastIndex = at;
    return form.exec(text);
  };
  for (;;) {
    at += match(blanks)?.[0].length ?? 0;
    if (at >= text.length) break;
    const found = match(tokenForm);
    const kind = kinds.find((one) => found?.groups?.[one] !== undefined);
    if (found === null || kind === undefined) throw unexpected({ text: text[at] ?? '', at });
    if (tokens.length >= tokensMax) {
      throw new AppError('invalid', `The filter has more than ${tokensMax} words and signs.`);
    }
    tokens.push({ kind, text: found[0], at });
    at += found[0].length;
  }
  return [...tokens, { kind: 'end', text: 'the end', at }];
}

const comparisonSigns = ['=', '<>', '<', '<=', '>', '>='];

/** Words that are no names. */
const reserved = new Set(['and', 'or', 'not', 'is', 'null', 'like', 'between', 'in']);

class Parser {
  readonly #text: string;
  readonly #tokens: readonly Token[];
  #next = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = tokensOf(text);
  }

  end(): void {
    if (this.#peek().kind !== 'end') throw unexpected(this.#peek(), 'AND, OR or the end');
  }

  disjunction(depth: number): Cql2 {
    return this.#joined('or', () => this.#conjunction(depth));
  }

  #conjunction(depth: number): Cql2 {
    return this.#joined('and', () => this.#factor(depth));
  }

  #joined(op: string, parse: () => Cql2): Cql2 {
    const args = [parse()];
    while (this.#takeWord(op)) args.push(parse());
    const [only] = args;
    return args.length === 1 && only !== undefined ? only : { op, args };
  }

  #factor(depth: number): Cql2 {
    if (depth > filterDepthMax) {
      throw new AppError('invalid', `The filter is nested deeper than ${filterDepthMax} levels.`);
    }
    if (this.#takeWord('not')) return { op: 'not', args: [this.#factor(depth + 1)] };
    if (this.#takeSign('(')) {
      const inner = this.disjunction(depth + 1);
      this.#requireSign(')');
      return inner;
    }
    return this.#predicate(depth);
  }

  #predicate(depth: number): Cql2 {
    const left = this.#operand(depth);
    const sign = this.#peek();
    if (sign.kind === 'sign' && comparisonSigns.includes(sign.text)) {
      this.#take();
      return { op: sign.text, args: [left, this.#operand(depth)] };
    }
    if (this.#takeWord('is')) {
      const isNegated = this.#takeWord('not');
      this.#requireWord('null');
      return negated(isNegated, { op: 'isNull', args: [left] });
    }
    const isNegated = this.#takeWord('not');
    if (this.#takeWord('like')) {
      return negated(isNegated, { op: 'like', args: [left, this.#operand(depth)] });
    }
    if (this.#takeWord('between')) {
      const low = this.#operand(depth);
      this.#requireWord('and');
      return negated(isNegated, { op: 'between', args: [left, low, this.#operand(depth)] });
    }
    if (this.#takeWord('in')) {
      return negated(isNegated, { op: 'in', args: [left, this.#list(depth)] });
    }
    const isComplete = typeof left === 'boolean' || (typeof left === 'object' && 'op' in left);
    if (isComplete && !isNegated) return left;
    throw unexpected(this.#peek(), 'an operator, such as =, <, LIKE or IS NULL');
  }

  /** Parses a property, a literal or a function, or a product of such. */
  #operand(depth: number): Cql2 {
    const left = this.#atom(depth);
    return this.#takeSign('*') ? { op: '*', args: [left, this.#atom(depth)] } : left;
  }

  #atom(depth: number): Cql2 {
    if (depth > filterDepthMax) throw unexpected(this.#peek());
    if (this.#takeSign('(')) {
      const inner = this.#operand(depth + 1);
      this.#requireSign(')');
      return inner;
    }
    const token = this.#take();
    if (token.kind === 'text') return textIn(token);
    if (token.kind === 'number') return Number(token.text);
    if (token.kind === 'quoted') return { property: token.text.slice(1, -1) };
    const word = token.text.toLowerCase();
    if (token.kind !== 'word' || reserved.has(word)) {
      throw unexpected(token, 'a property or a literal');
    }
    if (word === 'true' || word === 'false') return word === 'true';
    if (word.toUpperCase() in geometryTypes) return this.#geometry(token);
    return this.#isSign('(') ? this.#call(token.text, depth) : { property: token.text };
  }

  /** Parses the arguments of a function, or the value of a literal such as `DATE('2026-11-20')`. */
  #call(name: string, depth: number): Cql2 {
    const args = this.#list(depth);
    const [first = ''] = args;
    const word = name.toLowerCase();
    if (word === 'timestamp' && typeof first === 'string') return { timestamp: first };
    if (word === 'date' && typeof first === 'string') return { date: first };
    if (word === 'interval') return { interval: args };
    if (word === 'bbox') return { bbox: args.map(Number) };
    return { op: word, args };
  }

  #list(depth: number): Cql2[] {
    if (depth > filterDepthMax) throw unexpected(this.#peek());
    this.#requireSign('(');
    const values: Cql2[] = [];
    do {
      values.push(this.#isSign('(') ? this.#list(depth + 1) : this.#operand(depth + 1));
    } while (this.#takeSign(','));
    this.#requireSign(')');
    return values;
  }

  /** Parses well-known text, from the type to the parenthesis that closes it. */
  #geometry(start: Token): Cql2 {
    let [open, last] = [0, start];
    do {
      last = this.#take();
      if (last.text === '(') open += 1;
      if (last.text === ')') open -= 1;
    } while (last.kind !== 'end' && (open > 0 || last.text !== ')'));
    const geometry = parseGeometry(this.#text.slice(start.at, last.at + 1));
    if (geometry === null) throw unexpected(start, 'a geometry, such as POINT(11.5 48.1)');
    return geometry;
  }

  #peek(): Token {
    return this.#tokens[this.#next] ?? { kind: 'end', text: 'the end', at: 0 };
  }

  #take(): Token {
    const token = this.#peek();
    this.#next += 1;
    return token;
  }

  #isSign(text: string): boolean {
    const { kind, text: next } = this.#peek();
    return kind === 'sign' && next === text;
  }

  #takeSign(text: string): boolean {
    const isNext = this.#isSign(text);
    if (isNext) this.#next += 1;
    return isNext;
  }

  #requireSign(text: string): void {
    if (!this.#takeSign(text)) throw unexpected(this.#peek(), text);
  }

  #takeWord(word: string): boolean {
    const { kind, text } = this.#peek();
    const isNext = kind === 'word' && text.toLowerCase() === word;
    if (isNext) this.#next += 1;
    return isNext;
  }

  #requireWord(word: string): void {
    if (!this.#takeWord(word)) throw unexpected(this.#peek(), word.toUpperCase());
  }
}

function textIn({ text }: Token): string {
  return text.slice(1, -1).replaceAll(/''|\\./gs, (two) => (two.endsWith("'") ? "'" : two));
}

function negated(isNegated: boolean, condition: Cql2): Cql2 {
  return isNegated ? { op: 'not', args: [condition] } : condition;
}

function unexpected({ text, at }: Pick<Token, 'text' | 'at'>, expected?: string): AppError {
  const shown = JSON.stringify(text.slice(0, 40));
  return new AppError('invalid', `Unexpected ${shown} at character ${at + 1} of the filter.`, {
    advice: expected === undefined ? undefined : `Expected: ${expected}.`,
  });
}
