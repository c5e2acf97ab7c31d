/** Reads a condition about an attribute: `Attributes/OData.CSC.<kind>Attribute/any(…)`. */
import { type AttributeKind, attributeKinds, type FilterTree } from '../domain/filter-tree.ts';
import type { Span } from './finding.ts';
import { named } from './hints.ts';
import type { ConditionParts, Cursor } from './parse-cursor.ts';
import { parseLiteral } from './parse-literal.ts';
import { parseOperator } from './parse-operator.ts';
import { type Token, unquoted } from './tokenize.ts';

/** The path before the parenthesis, as far as it says that an attribute is meant. */
export const attributeLambda = /^attributes\/.*$/i;

const path = /^(attributes\/)odata\.csc\.([a-z]+)attribute(\/)(any)$/i;
const kindList = attributeKinds.map((kind) => `OData.CSC.${kind}Attribute`).join(', ');

export function parseAttribute(cursor: Cursor): FilterTree {
  const lambda = cursor.take();
  const kind = kindOfPath(cursor, lambda);
  cursor.takeSymbol('(');
  const variable = parseVariable(cursor, kind);
  const name = parseName(cursor, variable, kind);
  parseAnd(cursor, variable, kind);
  const path = cursor.peek();
  const valueKind = parseValuePath(cursor, variable, kind);
  const operatorToken = cursor.peek();
  const operator = parseOperator(cursor);
  const literal = parseLiteral(cursor);
  if (cursor.isKeyword('and') || cursor.isKeyword('or')) {
    const message = 'One any(…) asks for one value of one attribute.';
    const hint = 'Close the parenthesis, and begin another any(…) for the next attribute.';
    cursor.failUnexpected({ code: 'invalid-attribute-condition', message, expected: '`)`', hint });
  }
  const message = `The parenthesis of any(…) at character ${lambda.end + 1} is never closed.`;
  const unclosed = cursor.peek().kind === 'end' ? { message } : {};
  cursor.takeSymbol(')', { code: 'missing-parenthesis', ...unclosed });
  const node = { node: 'attribute', kind, name: name.value, valueKind, operator, literal } as const;
  const parts: ConditionParts = { kind: lambda, name: name.token, operator: operatorToken };
  return cursor.add(node, lambda.start, { ...parts, valueKind: path });
}

/** How the whole condition is written. */
function template(kind: AttributeKind, variable = 'att'): string {
  const value = kind === 'String' ? "'…'" : '…';
  return `${variable}/Name eq '…' and ${variable}/OData.CSC.${kind}Attribute/Value eq ${value}`;
}

function kindOfPath(cursor: Cursor, token: Token): AttributeKind {
  const [, , word = ''] = path.exec(token.raw) ?? [];
  const kind = attributeKinds.find((one) => one.toLowerCase() === word.toLowerCase());
  if (kind === undefined) {
    const message = `${named(token.raw)} is not a way to ask for an attribute.`;
    const expected = `Attributes/${kindList.split(', ')[0]}/any(…), or another kind: ${attributeKinds.join(', ')}`;
    return cursor.fail(token, { code: 'invalid-attribute-condition', message, expected });
  }
  const [first = '', ...rest] = token.raw.split('/');
  const written = rest.join('/');
  const published = `OData.CSC.${kind}Attribute/any`;
  const start = token.start + first.length + 1;
  // The documentation itself writes `attributes` in small letters.
  if (written !== published) cursor.warnCapitals({ start, end: token.end }, written, published);
  return kind;
}

/** Takes `att:`; any name will do. */
function parseVariable(cursor: Cursor, kind: AttributeKind): string {
  const expected = `att:${template(kind)}`;
  const token = cursor.peek();
  if (token.kind !== 'word' || token.raw.includes('/')) cursor.failUnexpected({ expected });
  cursor.take();
  cursor.takeSymbol(':', { expected: '`:`', hint: `Write any(${expected}).` });
  return token.raw;
}

/** Takes `att/Name eq '…'`. */
function parseName(cursor: Cursor, variable: string, kind: AttributeKind) {
  const token = cursor.peek();
  const expected = `${variable}/Name eq '…'`;
  if (token.kind === 'word') {
    const { rest } = pathOf(cursor, token, variable);
    if (/(?:^|\/)value$/i.test(rest)) {
      const message = 'The value stands before the name.';
      const hint = `Turn them round: ${template(kind, variable)}`;
      cursor.fail(token, { code: 'invalid-attribute-condition', message, expected, hint });
    }
    if (!/^name$/i.test(rest)) cursor.failUnexpected({ expected });
    cursor.take();
  } else cursor.failUnexpected({ expected });
  if (!cursor.isKeyword('eq')) {
    const message = 'The name of an attribute can only be compared with `eq`.';
    const word = cursor.peek().kind === 'word' ? { message } : {};
    cursor.failUnexpected({ code: 'invalid-attribute-condition', ...word, expected: '`eq`' });
  }
  cursor.takeKeyword('eq');
  const text = cursor.peek();
  if (text.kind !== 'text') {
    const hint = text.kind === 'word' ? { hint: `Put it in single quotes: '${text.raw}'` } : {};
    cursor.failUnexpected({ expected: 'the name in single quotes', ...hint });
  }
  cursor.take();
  return { value: unquoted(text.raw), token: text };
}

function parseAnd(cursor: Cursor, variable: string, kind: AttributeKind): void {
  if (cursor.isKeyword('and')) {
    cursor.takeKeyword('and');
    return;
  }
  const value = template(kind, variable).replace(/^.*? and /, '');
  const message = 'The value is missing that the attribute is compared with.';
  const missing = cursor.isSymbol(')') ? { message } : {};
  const code = 'invalid-attribute-condition';
  cursor.failUnexpected({ code, expected: `and ${value}`, ...missing });
}

/** Takes `att/Value`, or with a kind before it: `att/OData.CSC.StringAttribute/Value`. */
function parseValuePath(cursor: Cursor, variable: string, kind: AttributeKind): AttributeKind {
  const expected = `${variable}/OData.CSC.${kind}Attribute/Value`;
  const token = cursor.peek();
  const code = 'invalid-attribute-condition';
  if (token.kind === 'word' && /^(?:contains|startswith|endswith)$/i.test(token.raw)) {
    const message = `${token.raw} works on fields, not on the values of attributes.`;
    cursor.failUnexpected({ code, message, expected });
  }
  if (token.kind !== 'word') cursor.failUnexpected({ expected });
  const { rest, start } = pathOf(cursor, token, variable);
  if (/^value$/i.test(rest)) {
    cursor.take();
    return kind;
  }
  const [, word = ''] = /^odata\.csc\.([a-z]+)attribute\/value$/i.exec(rest) ?? [];
  const valueKind = attributeKinds.find((one) => one.toLowerCase() === word.toLowerCase());
  if (valueKind === undefined) return cursor.failUnexpected({ code, expected });
  const written = rest.slice(0, -'/Value'.length);
  const published = `OData.CSC.${valueKind}Attribute`;
  const span = { start, end: start + written.length };
  if (written !== published) cursor.warnCapitals(span, written, published);
  cursor.take();
  return valueKind;
}

/** What follows the variable and its slash. */
function pathOf(cursor: Cursor, token: Token, variable: string): Span & { rest: string } {
  const slash = token.raw.indexOf('/');
  const first = slash < 0 ? token.raw : token.raw.slice(0, slash);
  if (first !== variable) {
    const message = `The variable here is ${named(variable)}, not ${named(first)}.`;
    const span = { start: token.start, end: token.start + first.length };
    const hint = `Write ${named(`${variable}/…`)}.`;
    cursor.fail(span, { code: 'invalid-attribute-condition', message, hint });
  }
  return { rest: token.raw.slice(slash + 1), start: token.start + slash + 1, end: token.end };
}
