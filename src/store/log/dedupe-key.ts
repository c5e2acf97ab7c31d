/** The log's unique key. */
import { hash } from 'node:crypto';

const headBytes = 12;

const digestBytes = 12;

/**
 * The key of an identity text: its own beginning, then a part of its SHA-256. The digest tells two
 * texts apart; the beginning keeps them in their order, so that the AckIds and dates seen in
 * practice, which rise with time, are added at the end of the index instead of all over it.
 */
export function dedupeKey(identity: string): Uint8Array {
  const key = Buffer.alloc(headBytes + digestBytes);
  key.write(identity.slice(identity.indexOf('\n') + 1), 0, headBytes, 'latin1');
  hash('sha256', identity, 'buffer').copy(key, headBytes, 0, digestBytes);
  return key;
}

/**
 * The key of a notification whose AckId is known from another subscription: that of the AckId, with a digest of the
 * subscription's id behind it. All rows of one AckId lie between that key and `lastKeyOf` it.
 */
export function subscriptionKey(key: Uint8Array, subscriptionId: string): Uint8Array {
  const digest = hash('sha256', subscriptionId, 'buffer').subarray(0, digestBytes);
  return Buffer.concat([key, digest]);
}

/** The end of the keys that begin with this one. */
export function lastKeyOf(key: Uint8Array): Uint8Array {
  return Buffer.concat([key, Buffer.alloc(digestBytes + 1, 0xff)]);
}
