/**
 * Reads the JSON bodies of queries. They are parsed on the main thread, which also receives notifications: limits of
 * size, depth and parts keep this short (docs/decisions/0060-bodies-of-queries.md).
 */
import type { IncomingMessage } from 'node:http';
import { filterDepthMax } from '../../filter/cursor.ts';
import { createBodyReceiver } from '../http/request-body.ts';
import { AppError } from '../terms/app-error.ts';
import { inTurn } from './query-line.ts';

/** Maximum memory of all bodies that are being received or wait to be parsed. */
const allBytesMax = 2 ** 20;

/** Maximum number of lists, objects and texts in a body. Numbers do not count. */
export const bodyPartsMax = 5_000;

/** Resolves with what `parse` returns for the text of a body. Rejects as `createBodyReceiver` and `parse` do. */
type ReadQueryBody = <Result>(
  incoming: IncomingMessage,
  parse: (text: string) => Result,
) => Promise<Result>;

/** Creates a reader whose bodies share one memory limit. At most one is parsed per turn of the event loop. */
export function createQueryBodyReader(bytesMax: number): ReadQueryBody {
  const receive = createBodyReceiver({ bytesMax, allBytesMax });
  return async (incoming, parse) => {
    if (incoming.headers['content-encoding'] !== undefined) {
      throw new AppError('unsupported', 'Send the body without Content-Encoding.');
    }
    const { bytes, release } = await receive(incoming);
    try {
      return await inTurn(() => {
        requireSmall(bytes);
        return parse(new TextDecoder().decode(bytes));
      });
    } finally {
      release();
    }
  };
}

const codes = (text: string) => Array.from(text, (character) => character.charCodeAt(0));
const [quote, backslash] = codes('"\\');
const opening = new Set(codes('[{'));
const closing = new Set(codes(']}'));

/**
 * Refuses JSON that would take long to parse and check: nested deeper than `filterDepthMax`, or of too many parts.
 * Reads each byte once. Throws `invalid`. Other texts pass: the parser refuses them.
 */
export function requireSmall(bytes: Uint8Array): void {
  let [depth, parts] = [0, 0];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (closing.has(byte)) depth -= 1;
    if (byte !== quote && !opening.has(byte)) continue;
    parts += 1;
    if (byte === quote) at = endOfText(bytes, at);
    else depth += 1;
    if (depth > filterDepthMax || parts > bodyPartsMax) {
      throw new AppError(
        'invalid',
        `The body is nested deeper than ${filterDepthMax} levels, or has more than ${bodyPartsMax} lists, objects and texts.`,
        { advice: 'Split it into several queries.' },
      );
    }
  }
}

/** Returns the position of the quote that ends the text. */
function endOfText(bytes: Uint8Array, start: number): number {
  let at = start + 1;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}
