/** Says what a token is doing that cannot stand where it stands, and what to write instead. */
import type { FilterFinding, Span } from '../finding.ts';
import type { Token } from '../syntax/tokenize.ts';

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
export function describeUnexpected(text: string, token: Token, fault: Partial<Fault>): Fault {
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
