/** The log's unique key. */
import { hash } from 'node:crypto';

/** The first 16 bytes of the SHA-256 of an identity text: narrow, and no two texts share one. */
export function dedupeKey(identity: string): Uint8Array {
  return hash('sha256', identity, 'buffer').subarray(0, 16);
}
