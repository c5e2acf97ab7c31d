/** HTTP Basic authentication (RFC 7617): accepts valid credentials; responds 401 or 429 to other requests. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createClientAddress, networkOf } from '../core/http/network-address.ts';
import { problemResponse } from '../core/http/problem.ts';
import { AppError } from '../core/terms/app-error.ts';
import { minuteUs } from '../core/terms/dates.ts';
import type { CredentialPair, Logger } from '../core/terms/ports.ts';

/** Returns the user name in an Authorization header with valid credentials; else null. */
type CredentialCheck = (authorization: string | undefined) => string | null;

export interface GateOptions {
  checkCredentials: CredentialCheck;
  log: Logger;
  nowUs: () => number;
  newRequestId: () => string;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is trusted; none by default. */
  trustedProxies?: readonly string[];
  /**
   * Limits guessing of a password that a user chose: after the maximum of failures, all logins of the address are
   * refused, valid ones too. By default, valid credentials are always accepted: the sender of notifications may share an
   * address with an attacker.
   */
  blocksAddresses?: boolean;
}

/** Maximum failures per minute from one address; then the response is 429. */
const failuresPerMinuteMax = 100;
/** Maximum log lines per minute about one address; the next line is that it gets 429. */
const linesPerAddressMax = 10;
/** Maximum log lines per minute in total: an IPv6 network has enough addresses to fill a disk. */
const linesPerMinuteMax = 30;

/** User name of an accepted request, or the response to a refused one. */
type Login = { username: string; refusal?: never } | { refusal: Response };

/**
 * Creates a check that accepts requests with valid credentials, and returns a response for others. A GET without a
 * login is not counted or logged as a failed one.
 */
export function createGate(
  options: GateOptions,
  onRefusal: () => void,
): (incoming: IncomingMessage) => Login {
  const { checkCredentials, log, nowUs, newRequestId, trustedProxies = [] } = options;
  const { blocksAddresses = false } = options;
  const failed = createMinuteCounter(nowUs);
  const clientAddress = createClientAddress(trustedProxies);
  const warn = createLoginLog(log, nowUs);
  // Failed logins of users and of the sender have different causes.
  const listener = blocksAddresses ? 'private' : 'public';
  const networkOfClient = (incoming: IncomingMessage) => networkOf(clientAddress(incoming));
  return (incoming) => {
    const isBlocked =
      blocksAddresses && failed.count(networkOfClient(incoming)) >= failuresPerMinuteMax;
    const username = isBlocked ? null : checkCredentials(incoming.headers.authorization);
    if (username !== null) return { username };
    // Not before: for a push, the address would cost more than the check.
    const address = clientAddress(incoming);
    const key = networkOf(address);
    const requestId = newRequestId();
    // Tries no password: a probe of `earshot doctor`, or a scan.
    if (incoming.method === 'GET' && incoming.headers.authorization === undefined) {
      return { refusal: unauthorized(requestId) };
    }
    const failures = failed.add(key);
    onRefusal();
    if (failures <= failuresPerMinuteMax) {
      if (failures <= linesPerAddressMax) warn({ requestId, address, listener }, 'login failed');
      return { refusal: unauthorized(requestId) };
    }
    if (failures === failuresPerMinuteMax + 1) {
      warn({ requestId, address, listener }, 'too many failed logins from this address');
    }
    const seconds = failed.secondsLeft(key);
    const error = new AppError('too_many', 'Too many failed logins from this address.', {
      advice: isBlocked
        ? `The correct password is refused, too. Retry in ${seconds} s.`
        : 'Use the correct user name and password.',
    });
    return { refusal: problemResponse(error, requestId, { 'Retry-After': String(seconds) }) };
  };
}

function unauthorized(requestId: string): Response {
  const error = new AppError('unauthorized', 'A valid user name and password are required.');
  const challenge = 'Basic realm="earshot", charset="UTF-8"';
  return problemResponse(error, requestId, { 'WWW-Authenticate': challenge });
}

/** Logs failed logins up to a limit per minute, so that they cannot fill the disk. */
function createLoginLog(log: Logger, nowUs: () => number): Logger['warn'] {
  const logged = createMinuteCounter(nowUs);
  return (fields, message) => {
    const lines = logged.add('all');
    if (lines <= linesPerMinuteMax) log.warn(fields, message);
    else if (lines === linesPerMinuteMax + 1) {
      log.warn({}, 'many failed logins; further ones are not logged for one minute');
    }
  };
}

const windowUs = minuteUs;
const countedKeysMax = 10_000;

/** Counts events by key, in limited memory. The minute of a key starts with its first event. */
function createMinuteCounter(nowUs: () => number) {
  const windows = new Map<string, { startUs: number; count: number }>();
  const currentWindow = (key: string) => {
    const now = nowUs();
    const known = windows.get(key);
    // A window in the future was opened before the clock was corrected.
    const isCurrent = known !== undefined && now >= known.startUs && now - known.startUs < windowUs;
    return isCurrent ? known : { startUs: now, count: 0 };
  };
  return {
    count: (key: string): number => currentWindow(key).count,
    /** Returns the time until the minute of the key ends. */
    secondsLeft: (key: string): number =>
      Math.ceil((currentWindow(key).startUs + windowUs - nowUs()) / 1_000_000),
    /** Returns the count with this event. */
    add: (key: string): number => {
      const window = currentWindow(key);
      window.count += 1;
      // Moved to the end: the key without events for the longest time is dropped first.
      windows.delete(key);
      windows.set(key, window);
      if (windows.size > countedKeysMax) {
        const [oldest] = windows.keys();
        if (oldest !== undefined) windows.delete(oldest);
      }
      return window.count;
    },
  };
}

/** Maximum length of the Authorization header. */
const headerCharactersMax = 4_096;
const basicHeader = /^basic +([a-z0-9+/]+={0,2})$/i;

/** Sizes of compared credentials are multiples of this. */
const blockBytes = 256;
const endByte = 1;

/**
 * Creates the check. Compares the credentials with every pair in constant time, which depends on neither: all have one
 * size, filled up with zeros after a last byte. A digest of each would take 1 µs more.
 */
export function createCredentialCheck(pairs: readonly CredentialPair[]): CredentialCheck {
  const accepted = pairs.flatMap(encodingsOf);
  const longest = Math.max(0, ...accepted.map(({ bytes }) => bytes.length));
  const size = blockBytes * Math.ceil((longest + 1) / blockBytes);
  const padded = accepted.map(({ username, bytes }) => ({
    username,
    expected: Buffer.concat([bytes, Uint8Array.of(endByte)], size),
  }));
  const given = Buffer.alloc(size);
  return (authorization) => {
    if (authorization === undefined || authorization.length > headerCharactersMax) return null;
    const encoded = basicHeader.exec(authorization)?.[1];
    if (encoded === undefined || Buffer.byteLength(encoded, 'base64') >= size) return null;
    given.fill(0);
    given[given.write(encoded, 'base64')] = endByte;
    let match: string | null = null;
    for (const { username, expected } of padded) {
      match = timingSafeEqual(expected, given) ? username : match;
    }
    return match;
  };
}

/**
 * Our challenge requires UTF-8. Some senders ignore it and use ISO 8859-1, so this encoding is also
 * accepted if it can represent the credentials.
 */
function encodingsOf({ username, password }: CredentialPair) {
  // A user name has no colon (RFC 7617, 2); a password may have some.
  const text = `${username}:${password}`;
  const hasLatin1Form = /[\u0080-\u00ff]/.test(text) && !/[^\0-\u00ff]/.test(text);
  const encodings: BufferEncoding[] = hasLatin1Form ? ['utf8', 'latin1'] : ['utf8'];
  return encodings.map((encoding) => ({ username, bytes: Buffer.from(text, encoding) }));
}
