/** Remembers which credentials the catalogue was given, without remembering them. */
import { scryptSync, timingSafeEqual } from 'node:crypto';
import type { EndpointCredentials } from '../service/subscription-client.ts';

const digestBytes = 32;
/** A quarter of Node's default: some 10 ms, as it runs beside a receiver. */
const cost = { N: 4096 };

/** A digest with its salt, as text. `salt` is random text. */
export function digestCredentials({ username, password }: EndpointCredentials, salt: string) {
  // A user name holds no colon, so that no two pairs give the same text.
  const digest = scryptSync(`${username}:${password}`, salt, digestBytes, cost);
  return `scrypt:${salt}:${digest.toString('hex')}`;
}

/** True when a digest is that of these credentials. */
export function isDigestOf(digest: string | null, credentials: EndpointCredentials): boolean {
  const [, salt] = digest?.split(':') ?? [];
  if (digest === null || salt === undefined) return false;
  const [known, given] = [digest, digestCredentials(credentials, salt)].map((text) =>
    Buffer.from(text),
  );
  if (known === undefined || given === undefined || known.length !== given.length) return false;
  return timingSafeEqual(known, given);
}
