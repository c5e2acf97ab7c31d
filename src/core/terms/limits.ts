/** Limits of a body with notifications. This file imports nothing, because every thread of the store loads it. */

/** Maximum size, encoded and decoded (design, interface contract). */
export const bodyBytesMax = 2 ** 20;

/** Maximum nesting; records of the catalogue have about ten levels. */
export const nestingMax = 100;
