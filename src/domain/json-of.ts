/** Reads a text that should be JSON and may be anything. */

/** What the text says; undefined, which JSON cannot say, when it is no JSON. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
