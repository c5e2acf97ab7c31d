/** Reads a condition about the place: `OData.CSC.Intersects(area=geography'SRID=4326;…')`. */
import type { FilterTree, IntersectsNode } from '../../domain/filter-tree.ts';
import { undocumentedForm } from '../hints/unexpected.ts';
import type { Cursor } from './cursor.ts';
import { parseWkt } from './parse-wkt.ts';
import type { Token } from './tokenize.ts';

const intersectsFunction = 'OData.CSC.Intersects';
/** As two public clients write it. */
const shortFunction = 'Intersects';

const words: readonly IntersectsNode['argument'][] = ['area', 'Footprint'];
const form = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

/** True when the function for places comes next, with its prefix or without. */
export function isIntersects(cursor: Cursor): boolean {
  return cursor.isKeyword(intersectsFunction) || cursor.isKeyword(shortFunction);
}

export function parseIntersects(cursor: Cursor): FilterTree {
  const { start } = takeFunction(cursor);
  cursor.takeSymbol('(');
  const argument = parseArgument(cursor);
  const geography = parseGeography(cursor);
  const { srid, geometry } = parseWkt(cursor, geography);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'intersects', argument, srid: srid.value, geometry } as const;
  return cursor.add(node, start, { srid: srid.span });
}

function takeFunction(cursor: Cursor): Token {
  if (cursor.isKeyword(intersectsFunction)) return cursor.takeKeyword(intersectsFunction);
  const token = cursor.takeKeyword(shortFunction);
  const what = 'The function is written without its prefix.';
  cursor.warn(token, undocumentedForm(what, `Write ${intersectsFunction}.`));
  return token;
}

/** Takes `area=` or `Footprint=`; a comma instead of the sign is a form of two public clients. */
function parseArgument(cursor: Cursor): IntersectsNode['argument'] {
  const argument = words.find((word) => cursor.isKeyword(word));
  const hint = `Write ${intersectsFunction}(area=${form}).`;
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  cursor.takeKeyword(argument);
  if (!cursor.isSymbol('=') && !cursor.isSymbol(',')) {
    cursor.failUnexpected({ expected: '`=`', hint });
  }
  const sign = cursor.take();
  if (sign.raw === ',') {
    const what = 'A comma stands where the documentation has an equals sign.';
    cursor.warn(sign, undocumentedForm(what, `Write ${argument}=geography'…'.`));
  }
  return argument;
}

/** Takes `geography'…'`; the text must follow the word at once. */
function parseGeography(cursor: Cursor): Token {
  if (!cursor.isKeyword('geography')) cursor.failUnexpected({ expected: form });
  const word = cursor.takeKeyword('geography');
  const text = cursor.peek();
  if (text.kind !== 'text') cursor.failUnexpected({ expected: form });
  if (text.start > word.end) {
    const message = 'No blank may stand between `geography` and its text.';
    const span = { start: word.end, end: text.start };
    cursor.fail(span, { code: 'wrong-character', message, hint: 'Leave out the blank.' });
  }
  return cursor.take();
}
