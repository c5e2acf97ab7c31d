/** Reads a condition about an attribute: `Attributes/OData.CSC.<kind>Attribute/any(…)`. */
import { type AttributeKind, attributeKinds, type FilterTree } from '../domain/filter-tree.ts';
import { type Cursor, parseOperation, type Token, unquoted } from './cursor.ts';
import { named } from './finding.ts';
import { insteadOfIn, undocumentedForm, undocumentedOperator } from './hints.ts';

const lambdaPath = /^attributes\/odata\.csc\.([a-z]+)attribute\/any$/i;
const castPath = /^odata\.csc\.([a-z]+)attribute\/value$/i;
const code = 'invalid-attribute-condition';

/** What the parts inside the parentheses need to know. */
interface Lambda {
  readonly kind: AttributeKind;
  readonly variable: string;
  /** The parts as they should be written; with the usual variable instead of a long one. */
  readonly nameForm: string;
  readonly valueForm: string;
}

/** `in (…)` becomes an `or` of conditions with `eq`: the same meaning, in documented forms. */
export function parseAttribute(cursor: Cursor): FilterTree {
  const path = cursor.take();
  const kind = parseKind(cursor, path);
  cursor.takeSymbol('(');
  const lambda = parseVariable(cursor, kind);
  const nameToken = parseName(cursor, lambda);
  parseAnd(cursor, lambda);
  const valuePath = cursor.peek();
  const valueKind = parseValuePath(cursor, lambda);
  const { span: operatorToken, operator: written, literals } = parseOperation(cursor);
  if (written === 'in') cursor.warn(operatorToken, undocumentedOperator('in', insteadOfIn));
  parseEnd(cursor, path);
  const operator = written === 'in' ? 'eq' : written;
  const name = unquoted(nameToken.raw);
  const parts = { kind: path, name: nameToken, valueKind: valuePath, operator: operatorToken };
  const terms = literals.map((literal) => {
    const node = { node: 'attribute', kind, name, valueKind, operator, literal } as const;
    return cursor.add(node, path.start, parts);
  });
  const [first, second] = terms;
  if (first !== undefined && second === undefined) return first;
  const group = { node: 'or', terms } as const;
  const span = { start: path.start, end: cursor.lastEnd };
  cursor.spans.set(group, span);
  // The canonical text may put them in parentheses.
  cursor.deepen(span, cursor.depth + 1);
  return group;
}

function parseKind(cursor: Cursor, path: Token): AttributeKind {
  const kind = kindNamed(lambdaPath.exec(path.raw)?.[1]);
  if (kind === undefined) {
    const message = `${named(path.raw)} is not a way to ask for an attribute.`;
    const expected = `Attributes/OData.CSC.StringAttribute/any(…); other kinds are ${attributeKinds.slice(1).join(', ')}`;
    return cursor.fail(path, { code, message, expected });
  }
  // The documentation writes `attributes` in small letters too, but never the names of kinds.
  const start = path.start + 'Attributes/'.length;
  cursor.checkSpelling({ start, end: path.end }, `OData.CSC.${kind}Attribute/any`);
  return kind;
}

function kindNamed(word: string | undefined): AttributeKind | undefined {
  return attributeKinds.find((one) => one.toLowerCase() === word?.toLowerCase());
}

/** Takes `att:`; any name will do, also one with slashes, as the library odata-query makes it of the path. */
function parseVariable(cursor: Cursor, kind: AttributeKind): Lambda {
  const token = cursor.peek();
  const isPath = token.raw.includes('/');
  const shown = token.kind === 'word' && token.raw.length <= 20 && !isPath ? token.raw : 'att';
  const value = kind === 'String' ? "'…'" : '…';
  const nameForm = `${shown}/Name eq '…'`;
  const valueForm = `${shown}/OData.CSC.${kind}Attribute/Value eq ${value}`;
  if (token.kind !== 'word' || (isPath && cursor.peekSecond().raw !== ':')) {
    cursor.failUnexpected({ expected: 'a variable with a colon, `att:`' });
  }
  cursor.take();
  if (isPath) {
    cursor.warn(token, undocumentedForm('The variable is a path.', 'Write a short name: att.'));
  }
  const hint = `Write any(${shown}:${nameForm} and ${valueForm}).`;
  cursor.takeSymbol(':', { hint });
  return { kind, variable: token.raw, nameForm, valueForm };
}

/** Takes `att/Name eq '…'`; gives the name. */
function parseName(cursor: Cursor, { variable, nameForm: expected, valueForm }: Lambda): Token {
  const path = restOfPath(cursor, variable, expected);
  if (/(?:^|\/)value$/i.test(path)) {
    const message = 'The value stands before the name.';
    const hint = `Write the name first: ${expected} and ${valueForm}`;
    cursor.fail(cursor.peek(), { code, message, expected, hint });
  }
  if (!/^name$/i.test(path)) cursor.failUnexpected({ expected });
  cursor.take();
  if (!cursor.isKeyword('eq')) {
    const message = 'The name of an attribute can only be compared with `eq`.';
    const word = cursor.peek().kind === 'word' ? { message } : {};
    cursor.failUnexpected({ code, ...word, expected: '`eq`' });
  }
  cursor.takeKeyword('eq');
  const text = cursor.peek();
  if (text.kind === 'text') return cursor.take();
  const hint = `Put it in single quotes: ${named(`'${text.raw}'`)}`;
  const word = text.kind === 'word' ? { code: 'unquoted-text' as const, hint } : {};
  return cursor.failUnexpected({ expected: 'the name in single quotes', ...word });
}

function parseAnd(cursor: Cursor, lambda: Lambda): void {
  if (!cursor.isKeyword('and')) {
    const message = 'The value is missing that the attribute is compared with.';
    const missing = cursor.isSymbol(')') ? { message } : {};
    cursor.failUnexpected({ code, expected: `and ${lambda.valueForm}`, ...missing });
  }
  cursor.takeKeyword('and');
}

/** Takes `att/Value`, or with a kind before it: `att/OData.CSC.StringAttribute/Value`. */
function parseValuePath(cursor: Cursor, lambda: Lambda): AttributeKind {
  const { variable, valueForm: expected } = lambda;
  const { raw, start, end } = cursor.peek();
  if (/^(?:contains|startswith|endswith)$/i.test(raw)) {
    const message = `${raw} works on fields, not on the values of attributes.`;
    cursor.failUnexpected({ code, message, expected });
  }
  const path = restOfPath(cursor, variable, expected);
  const isBare = /^value$/i.test(path);
  const kind = isBare ? lambda.kind : kindNamed(castPath.exec(path)?.[1]);
  if (kind === undefined) return cursor.failUnexpected({ code, expected });
  if (!isBare) {
    const span = { start: start + variable.length + 1, end: end - '/Value'.length };
    cursor.checkSpelling(span, `OData.CSC.${kind}Attribute`);
  }
  cursor.take();
  return kind;
}

/** What follows the variable and its slash in the next token, which is not taken. */
function restOfPath(cursor: Cursor, variable: string, expected: string): string {
  const { kind, raw, start } = cursor.peek();
  if (kind !== 'word') return cursor.failUnexpected({ code, expected });
  if (raw.startsWith(`${variable}/`)) return raw.slice(variable.length + 1);
  const [first = ''] = raw.split('/');
  const message = `The variable here is ${named(variable)}, not ${named(first)}.`;
  return cursor.fail({ start, end: start + first.length }, { code, message, expected });
}

function parseEnd(cursor: Cursor, path: Token): void {
  if (cursor.isKeyword('and') || cursor.isKeyword('or')) {
    const message = 'One any(…) asks for one value of one attribute.';
    const hint = 'Close the parenthesis, and begin another any(…) for the next attribute.';
    cursor.failUnexpected({ code, message, expected: '`)`', hint });
  }
  const message = `The parenthesis of any(…), character ${path.end + 1}, is never closed.`;
  const unclosed = cursor.peek().kind === 'end' ? { message } : {};
  cursor.takeSymbol(')', { code: 'missing-parenthesis', ...unclosed });
}
