/** Reads a condition about the place: `OData.CSC.Intersects(area=geography'SRID=4326;…')`. */
import type { FilterTree, IntersectsNode } from '../../domain/filter-tree.ts';
import type { Cursor } from './cursor.ts';
import { parseWkt } from './parse-wkt.ts';
import type { Token } from './tokenize.ts';

export const intersectsFunction = 'OData.CSC.Intersects';

const words: readonly IntersectsNode['argument'][] = ['area', 'Footprint'];
const form = "geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51,4 50))'";

export function parseIntersects(cursor: Cursor): FilterTree {
  const { start } = cursor.takeKeyword(intersectsFunction);
  cursor.takeSymbol('(');
  const argument = parseArgument(cursor);
  const geography = parseGeography(cursor);
  const { srid, geometry } = parseWkt(cursor, geography);
  cursor.takeSymbol(')', { code: 'missing-parenthesis' });
  const node = { node: 'intersects', argument, srid: srid.value, geometry } as const;
  return cursor.add(node, start, { srid: srid.span });
}

/** Takes `area=` or `Footprint=`. */
function parseArgument(cursor: Cursor): IntersectsNode['argument'] {
  const argument = words.find((word) => cursor.isKeyword(word));
  const hint = `Write ${intersectsFunction}(area=${form}).`;
  if (argument === undefined) return cursor.failUnexpected({ expected: '`area=`', hint });
  cursor.takeKeyword(argument);
  if (!cursor.isSymbol('=')) cursor.failUnexpected({ expected: '`=`', hint });
  cursor.take();
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
