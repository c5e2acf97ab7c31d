/** Makes text from outside safe to show on a terminal. */

/**
 * Replaces control characters, which could move the cursor or recolour the screen, and marks that
 * turn the direction of text around.
 */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c\u2028\u2029]/gu,
    '\ufffd',
  );
}
