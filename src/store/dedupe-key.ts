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
