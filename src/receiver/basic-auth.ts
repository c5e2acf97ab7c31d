/** HTTP Basic authentication (RFC 7617): lets in who has the right credentials, and answers 401 or 429 to others. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { AppError } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';
import { createClientAddress, networkOf } from '../http/network-address.ts';
import { type CredentialPair, probeProofHeader } from '../http/probe-proof.ts';
import { problemResponse } from '../http/problem.ts';

/** The user name of the accepted pair that an Authorization header carries; null for any other. */
type CredentialCheck = (authorization: string | undefined) => string | null;

export interface GateOptions {
  checkCredentials: CredentialCheck;
  log: Logger;
  nowUs: () => number;
  newRequestId: () => string;
  /** Addresses and ranges of proxies whose `X-Forwarded-For` is believed; none by default. */
  trustedProxies?: readonly string[];
  /** True when the value of `probeProofHeader` is a proof; no value is, by default. */
  isProbeProof?: (value: string | undefined) => boolean;
}

/** More failures than this in one minute from one address are answered with 429. */
const failuresPerMinuteMax = 100;
/** After this number of log lines a minute about one address, the next one is that it gets 429. */
const linesPerAddressMax = 10;
/** Log lines a minute about all addresses: whoever has an IPv6 network has more of them than a disk has space. */
const linesPerMinuteMax = 30;

/** Who was let in, or the answer for somebody who was not. */
type Passage = { username: string; refusal?: never } | { refusal: Response };

/**
 * Answers a request without the right credentials; one that has them passes. A probe of our own gets the same
 * answer, but is no failed login: it is neither counted nor logged as one.
 */
export function createGate(
  options: GateOptions,
  onRefusal: () => void,
): (incoming: IncomingMessage) => Passage {
  const { checkCredentials, log, nowUs, newRequestId, trustedProxies = [] } = options;
  const { isProbeProof = () => false } = options;
  const countFailure = createMinuteCounter(nowUs);
  const clientAddress = createClientAddress(trustedProxies);
  const warn = createLoginLog(log, nowUs);
  return (incoming) => {
    const username = checkCredentials(incoming.headers.authorization);
    if (username !== null) return { username };
    const requestId = newRequestId();
    const address = clientAddress(incoming);
    if (isOwnProbe(incoming, isProbeProof)) {
      log.debug({ requestId, address }, 'probe of earshot doctor without credentials');
      return { refusal: unauthorized(requestId) };
    }
    const failures = countFailure(networkOf(address));
    onRefusal();
    if (failures <= failuresPerMinuteMax) {
      if (failures <= linesPerAddressMax) warn({ requestId, address }, 'wrong or no credentials');
      return { refusal: unauthorized(requestId) };
    }
    if (failures === failuresPerMinuteMax + 1) {
      warn({ requestId, address }, 'too many failed logins; this address gets 429 for a minute');
    }
    const error = new AppError('too_many', 'Too many failed logins from this address.');
    return { refusal: problemResponse(error, requestId, { 'Retry-After': '60' }) };
  };
}

/** Probes are GET requests without a login. */
function isOwnProbe(
  { method, headers }: IncomingMessage,
  isProbeProof: (value: string | undefined) => boolean,
): boolean {
  if (method !== 'GET' || headers.authorization !== undefined) return false;
  const value = headers[probeProofHeader];
  return isProbeProof(typeof value === 'string' ? value : undefined);
}

function unauthorized(requestId: string): Response {
  const error = new AppError('unauthorized', 'The right user name and password are needed.');
  const challenge = 'Basic realm="earshot", charset="UTF-8"';
  return problemResponse(error, requestId, { 'WWW-Authenticate': challenge });
}

/** Logs failed logins, and after the limit of a minute only that there are more: they must not fill the disk. */
export function createLoginLog(log: Logger, nowUs: () => number): Logger['warn'] {
  const countLine = createMinuteCounter(nowUs);
  return (fields, message) => {
    const lines = countLine('all');
    if (lines <= linesPerMinuteMax) log.warn(fields, message);
    else if (lines === linesPerMinuteMax + 1) {
      log.warn({}, 'many failed logins; more of them get no line of their own for a minute');
    }
  };
}

const windowUs = 60_000_000;
const countedKeysMax = 10_000;

/** Counts events by key, within bounded memory; returns their number in the key's current minute. */
function createMinuteCounter(nowUs: () => number): (key: string) => number {
  const windows = new Map<string, { startUs: number; count: number }>();
  return (key) => {
    const now = nowUs();
    const known = windows.get(key);
    // A window that begins in the future was opened by a clock that ran ahead.
    const isCurrent = known !== undefined && now >= known.startUs && now - known.startUs < windowUs;
    const window = isCurrent ? known : { startUs: now, count: 0 };
    window.count += 1;
    // Put back at the end: the key that has been quiet longest is the first to be dropped.
    windows.delete(key);
    windows.set(key, window);
    if (windows.size > countedKeysMax) {
      const [oldest] = windows.keys();
      if (oldest !== undefined) windows.delete(oldest);
    }
    return window.count;
  };
}

/** Longer headers are not read. */
const headerCharactersMax = 4_096;
/** A header that was right is remembered up to this size. */
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
