/** Tells product names that may be shown to a model from texts that only stand where a name should. */
import { readName } from '../../domain/naming/read-name.ts';

/**
 * Whether a name follows the naming convention of its mission as a whole: every part has its place, its
 * length and its signs, codes are known ones, and dates exist. Linear in the length.
 */
export function isKnownName(name: string): boolean {
  return readName(name) !== null;
}
