/** Bodies as JSON. */

const lenientUtf8 = new TextDecoder('utf-8');

/** Returns the parsed body; undefined if it is not JSON, so that one damaged record never fails a page. */
export function parsedBody(body: Uint8Array): unknown {
  try {
    // The decoder removes a byte order mark.
    return JSON.parse(lenientUtf8.decode(body));
  } catch {
    return undefined;
  }
}

/** Returns `parsedBody`, parsed once while the bytes are in use: they may contain thousands of notifications. */
export function bodyDocument(body: Uint8Array): unknown {
  if (!documents.has(body)) documents.set(body, parsedBody(body));
  return documents.get(body);
}

const documents = new WeakMap<Uint8Array, unknown>();
