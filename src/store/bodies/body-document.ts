/** Bodies as JSON. */
import { jsonOf } from '../../core/terms/text.ts';

const lenientUtf8 = new TextDecoder('utf-8');

/** Returns the parsed body; undefined if it is not JSON, so that one damaged record never fails a page. */
function parsedBody(body: Uint8Array): unknown {
  // The decoder removes a byte order mark.
  return jsonOf(lenientUtf8.decode(body));
}

/** Returns `parsedBody`, parsed once while the bytes are in use: they may contain thousands of notifications. */
export function bodyDocument(body: Uint8Array): unknown {
  if (!documents.has(body)) documents.set(body, parsedBody(body));
  return documents.get(body);
}

const documents = new WeakMap<Uint8Array, unknown>();
