/** How large a filter may be, so that no text can stall the program or exhaust its stack. */

/**
 * UTF-16 units of text. No limit of the catalogue is documented, the longest recorded filter has
 * 1,812; a coastline with thousands of points still fits.
 */
export const filterLengthMax = 100_000;

/**
 * Parentheses within parentheses, also those that the canonical text adds. Each level takes a few
 * calls of the stack; real filters have up to nine (facts, filters 2).
 */
export const filterDepthMax = 100;

/**
 * Conditions joined by `and` and `or`, and values of `in`. Each costs the evaluation, and the SQL that is
 * made of it.
 */
export const filterTermsMax = 5_000;
