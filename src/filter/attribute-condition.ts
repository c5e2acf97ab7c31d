/** Parses a condition on an attribute: `Attributes/OData.CSC.<kind>Attribute/any(…)`. */

import { type Cursor, parseOperation, type Token, unquoted } from './cursor.ts';
import { type AttributeKind, attributeKinds, type FilterTree } from './filter-tree.ts';
import { quoted } from './finding.ts';
import { undocumentedForm, undocumentedOperator } from './hints.ts';

const lambdaPath = /^attributes\/odata\.csc\.([a-z]+)attribute\/any$/i;
const castPath = /^odata\.csc\.([a-z]+)attribute\/value$/i;
const code = 'invalid-attribute-condition';

/** The lambda expression of a condition, with the correct forms of both comparisons. */
interface Lambda {
  readonly kind: AttributeKind;
  readonly variable: string;
  readonly nameForm: string;
  readonly valueForm: string;
}

/** `in (…)` becomes conditions with `eq`, joined by `or`: equivalent, and documented. */
export function parseAttribute(cursor: Cursor): FilterTree {
  const path = cursor.take();
  const kind = parseKind(cursor, path);
  cursor.takeSymbol('(');
  const lambda = parseVariable(cursor, kind);
  const nameToken = parseName(cursor, lambda);
  cursor.requireKeyword('and', { code, expected: `and ${lambda.valueForm}` });
  const valuePath = cursor.peek();
  const valueKind = parseValuePath(cursor, lambda);
  const { span: operatorToken, operator: written, literals } = parseOperation(cursor);
  if (written === 'in') cursor.warn(operatorToken, undocumentedOperator('in'));
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
  cursor.spans.set(group, { start: path.start, end: cursor.lastEnd });
  return group;
}

function parseKind(cursor: Cursor, path: Token): AttributeKind {
  const kind = kindNamed(lambdaPath.exec(path.raw)?.[1]);
  if (kind === undefined) {
    const message = `${quoted(path.raw)} is not a valid attribute path.`;
    const expected = `Attributes/OData.CSC.StringAttribute/any(…); other types: ${attributeKinds.slice(1).join(', ')}`;
    return cursor.fail(path, { code, message, expected });
  }
  // The documentation also writes `attributes` in lower case, but never the type names.
  const start = path.start + 'Attributes/'.length;
  cursor.checkSpelling({ start, end: path.end }, `OData.CSC.${kind}Attribute/any`);
  return kind;
}

function kindNamed(word: string | undefined): AttributeKind | undefined {
  return attributeKinds.find((one) => one.toLowerCase() === word?.toLowerCase());
}

/** Parses `att:`. Accepts any name, and also a path, which the library odata-query generates. */
function parseVariable(cursor: Cursor, kind: AttributeKind): Lambda {
  const { kind: tokenKind, raw } = cursor.peek();
  const isPath = raw.includes('/');
  if (tokenKind !== 'word' || (isPath && cursor.peekSecond().raw !== ':')) {
    cursor.failUnexpected({ expected: 'a lambda variable and a colon: `att:`' });
  }
  const token = cursor.take();
  if (isPath) {
    const hint = 'Use a name without slashes, such as att.';
    cursor.warn(token, undocumentedForm('The lambda variable has a slash.', hint));
  }
  cursor.takeSymbol(':');
  const shown = raw.length > 20 || isPath ? 'att' : raw;
  const value = kind === 'String' ? "'…'" : '…';
  const nameForm = `${shown}/Name eq '…'`;
  const valueForm = `${shown}/OData.CSC.${kind}Attribute/Value eq ${value}`;
  return { kind, variable: raw, nameForm, valueForm };
}

/** Parses `att/Name eq '…'`; returns the name's token. */
function parseName(cursor: Cursor, { variable, nameForm: expected }: Lambda): Token {
  const path = restOfPath(cursor, variable, expected);
  if (!/^name$/i.test(path)) cursor.failUnexpected({ code, expected });
  cursor.take();
  cursor.requireKeyword('eq', { code, expected: '`eq`' });
  if (cursor.peek().kind === 'text') return cursor.take();
  return cursor.failUnexpected({ expected: 'the name in single quotes' });
}

/** Parses `att/Value`, or with a type cast `att/OData.CSC.StringAttribute/Value`. */
function parseValuePath(cursor: Cursor, lambda: Lambda): AttributeKind {
  const { variable, valueForm: expected } = lambda;
  const { start, end } = cursor.peek();
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

/** Returns the path after `att/` in the next token, which is not consumed. */
function restOfPath(cursor: Cursor, variable: string, expected: string): string {
  const { kind, raw, start } = cursor.peek();
  if (kind !== 'word') return cursor.failUnexpected({ code, expected });
  if (raw.startsWith(`${variable}/`)) return raw.slice(variable.length + 1);
  const [first = ''] = raw.split('/');
  const message = `The lambda variable is ${quoted(variable)}, not ${quoted(first)}.`;
  return cursor.fail({ start, end: start + first.length }, { code, message, expected });
}

function parseEnd(cursor: Cursor, path: Token): void {
  if (cursor.isKeyword('and') || cursor.isKeyword('or')) {
    const message = 'Each any(…) compares one value of one attribute.';
    cursor.failUnexpected({ code, message, expected: '`)`' });
  }
  const message = `The parenthesis of any(…) at character ${path.end + 1} is not closed.`;
  const unclosed = cursor.peek().kind === 'end' ? { message } : {};
  cursor.takeSymbol(')', { code: 'missing-parenthesis', ...unclosed });
}
