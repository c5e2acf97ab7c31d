/** The ids of the benchmark's notifications: distinct, in the forms that exist, and readable back. */

/** Characters of a product id: the length of a UUID. */
export const productIdLength = 36;

/**
 * `observed`: as the catalogue's recorded bodies have it, base64 of `<unix ms>-<n>:<subscription>`,
 * rising with time. `guid`: as the specification says, landing anywhere in a unique index.
 */
export const ackIdForms = ['observed', 'guid'] as const;
export type AckIdForm = (typeof ackIdForms)[number];

const salts = { ack: 0x9e3779b9, product: 0x85ebca6b };
/** Thirteen digits for every run and sequence; runs follow each other in time. */
const firstMs = 1_700_000_000_000;
const runMs = 10_000_000;

/**
 * The product id of a run's notification as UUID-shaped text, scattered like real ones.
 *
 * @param run 0 to 65,535; ids of different runs never meet.
 * @param sequence 0 to 2^32 - 1.
 */
export function productIdOf(run: number, sequence: number): string {
  return uuidOf(salts.product, run, sequence);
}

/** The AckId of a run's notification; all of one form have the same length. */
export function ackIdOf(form: AckIdForm, run: number, sequence: number): string {
  if (form === 'guid') return uuidOf(salts.ack, run, sequence);
  const subscription = `880c4e1a-cfc7-4956-${hex(run, 4)}-${hex(sequence, 12)}`;
  const text = `${firstMs + run * runMs + sequence}-0:${subscription}`;
  return Buffer.from(text, 'latin1').toString('base64');
}

/** The sequence number of an AckId that `ackIdOf` made for this run; else undefined. */
export function sequenceOf(run: number, ackId: string): number | undefined {
  const form = ackId.length === productIdLength ? 'guid' : 'observed';
  const text = form === 'guid' ? ackId : Buffer.from(ackId, 'base64').toString('latin1');
  const sequence = Number.parseInt(text.slice(-12), 16);
  if (!Number.isInteger(sequence) || sequence > 0xffffffff) return undefined;
  return ackIdOf(form, run, sequence) === ackId ? sequence : undefined;
}

/** The last twelve digits are the sequence, so that rows can be counted without a list of ids. */
function uuidOf(salt: number, run: number, sequence: number): string {
  const scattered = scatter((sequence ^ salt ^ (run << 16)) >>> 0);
  const filler = scatter((scattered ^ salt) >>> 0);
  const digits = [hex(scattered, 8), hex(run, 4), `4${hex(filler & 0xfff, 3)}`];
  return `${digits.join('-')}-a${hex((filler >>> 12) & 0xfff, 3)}-${hex(sequence, 12)}`;
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
