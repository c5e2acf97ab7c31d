/** HTTP Basic authentication (RFC 7617) against one or several accepted pairs. */
import { hash, timingSafeEqual } from 'node:crypto';

export interface CredentialPair {
  username: string;
  password: string;
}

/** The user name of the accepted pair that an Authorization header carries; null for any other. */
export type CredentialCheck = (authorization: string | undefined) => string | null;

/** Longer headers are not looked at. */
const headerCharactersMax = 4_096;
/** A header that was right is remembered when it fits into so many. */
const rememberedBytes = 1_024;
const basicHeader = /^basic +([a-z0-9+/]+={0,2})$/i;

/**
 * Prepares the comparison. Both halves are always compared, each in constant time and over digests,
 * with every pair, so that the time taken tells nothing about which half or which pair was near. A header
 * that was right comes again with every push: it is known by its bytes, padded to one length.
 */
export function createCredentialCheck(pairs: readonly CredentialPair[]): CredentialCheck {
  const compare = createComparison(pairs);
  const given = Buffer.alloc(rememberedBytes);
  let right: { header: Buffer; username: string } | undefined;
  return (authorization) => {
    // UTF-8 takes up to three bytes for a character.
    if (authorization === undefined || 3 * authorization.length > rememberedBytes) {
      return compare(authorization);
    }
    given.fill(0).write(authorization);
    if (right !== undefined && timingSafeEqual(right.header, given)) return right.username;
    const username = compare(authorization);
    if (username !== null) right = { header: Buffer.from(given), username };
    return username;
  };
}

function createComparison(pairs: readonly CredentialPair[]): CredentialCheck {
  const accepted = pairs.flatMap(digestsOf);
  return (authorization) => {
    const given = parseHeader(authorization);
    const username = digest(given?.username ?? Buffer.alloc(0));
    const password = digest(given?.password ?? Buffer.alloc(0));
    let match: string | null = null;
    for (const pair of accepted) {
      const usernameEqual = timingSafeEqual(pair.username, username);
      const passwordEqual = timingSafeEqual(pair.password, password);
      match = usernameEqual && passwordEqual ? pair.name : match;
    }
    return given === null ? null : match;
  };
}

/**
 * UTF-8 is what our challenge asks for. Senders that take no notice of it write ISO 8859-1, so that
 * form of the same words is accepted too, where they have one.
 */
function digestsOf({ username, password }: CredentialPair) {
  const words = username + password;
  const hasSecondForm = /[\u0080-\u00ff]/.test(words) && !/[^\0-\u00ff]/.test(words);
  const encodings: BufferEncoding[] = hasSecondForm ? ['utf8', 'latin1'] : ['utf8'];
  return encodings.map((encoding) => ({
    name: username,
    username: digest(Buffer.from(username, encoding)),
    password: digest(Buffer.from(password, encoding)),
  }));
}

/** Splits at the first colon: a password may hold more of them, and either half may be empty. */
function parseHeader(header: string | undefined): { username: Buffer; password: Buffer } | null {
  if (header === undefined || header.length > headerCharactersMax) return null;
  const encoded = basicHeader.exec(header)?.[1];
  if (encoded === undefined) return null;
  const decoded = Buffer.from(encoded, 'base64');
  const colon = decoded.indexOf(':');
  if (colon === -1) return null;
  return { username: decoded.subarray(0, colon), password: decoded.subarray(colon + 1) };
}

function digest(bytes: Uint8Array): Uint8Array {
  return hash('sha256', bytes, 'buffer');
}
