/** The ids of the benchmark's notifications: distinct, spread like random ones, and readable back. */

/** Characters of an id: the length of a UUID. */
export const idLength = 36;

/** Which of a notification's two ids is meant. */
export type IdKind = 'ack' | 'product';

const kindSalt: Record<IdKind, number> = { ack: 0x9e3779b9, product: 0x85ebca6b };

/**
 * The id of a run's notification as UUID-shaped text.
 *
 * The first eight digits are scattered, because a real AckId or ProductId lands anywhere in a unique
 * index: ids in rising order would make every index look faster than it is. The last twelve are the
 * sequence number, so that a file's rows can be counted without keeping a list of ids.
 *
 * @param run 0 to 65,535; ids of different runs never meet.
 * @param sequence 0 to 2^32 - 1.
 */
export function requestId(kind: IdKind, run: number, sequence: number): string {
  const scattered = scatter((sequence ^ kindSalt[kind] ^ (run << 16)) >>> 0);
  const filler = scatter((scattered ^ kindSalt[kind]) >>> 0);
  const digits = [hex(scattered, 8), hex(run, 4), `4${hex(filler & 0xfff, 3)}`];
  return `${digits.join('-')}-a${hex((filler >>> 12) & 0xfff, 3)}-${hex(sequence, 12)}`;
}

/** The sequence number of an id that `requestId` made for this kind and run; else undefined. */
export function sequenceOf(kind: IdKind, run: number, id: string): number | undefined {
  if (id.length !== idLength) return undefined;
  const sequence = Number.parseInt(id.slice(24), 16);
  if (!Number.isInteger(sequence) || sequence > 0xffffffff) return undefined;
  return requestId(kind, run, sequence) === id ? sequence : undefined;
}

/** A one-to-one mixing of 32-bit numbers: neighbours end up far apart, and none collide. */
function scatter(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x45d9f3b);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
