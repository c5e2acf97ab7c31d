/** Times of renewals: by lifetime or the authority's renewal information (ARI), after failures, and their maximum. */
import 'reflect-metadata';
import { hash, X509Certificate } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  X509Certificate as ParsedCertificate,
} from '@peculiar/x509';
import { openAuthority } from './authority.ts';
import type { AcmeContext } from './order.ts';
import {
  type AcmeFolder,
  isFor,
  type OwnCertificate,
  type RenewalState,
  stateFor,
} from './state.ts';

const minuteUs = 60_000_000;
const dayUs = 24 * 60 * minuteUs;

interface Validity {
  notBefore: Date;
  notAfter: Date;
}

/** `cert` is PEM and identifies the certificate. */
export type CertificateLife = Validity & { cert: string };

export interface TimeWindow {
  startUs: number;
  endUs: number;
}

export interface RenewalTime {
  atUs: number;
  /** `share` of the lifetime, window of the `authority`, or `expiry`: that window is too near to it. */
  because: 'share' | 'authority' | 'expiry';
}

/** Maximum of a short lifetime, which is renewed with half of it left to have time for retries. */
const shortLifetimeUs = 10 * dayUs;
/** Share of the lifetime that stays for retries, even if the authority's window is later. */
const shareKept = 1 / 10;
/** Spreads the renewals of certificates of the same age. */
const renewalJitterShare = 1 / 50;

/**
 * Returns the time of the renewal: with a third of the lifetime left (half of a short one), or a time in the
 * authority's window (RFC 9773, 4.2), but before the share for retries. The time in a window depends only
 * on the certificate, so a restart does not change it.
 */
export function renewalTime(certificate: CertificateLife, window: TimeWindow | null): RenewalTime {
  const { beginsUs, endsUs, lifetimeUs } = lifeOf(certificate);
  // A number in [0, 1) derived from the certificate.
  const draw = Number.parseInt(hash('sha256', certificate.cert).slice(0, 8), 16) / 2 ** 32;
  if (window !== null && window.endUs >= window.startUs) {
    const advisedUs = window.startUs + draw * (window.endUs - window.startUs);
    const latestUs = endsUs - lifetimeUs * shareKept;
    if (advisedUs <= latestUs) {
      return { atUs: Math.round(Math.max(advisedUs, beginsUs)), because: 'authority' };
    }
    return { atUs: Math.round(latestUs), because: 'expiry' };
  }
  const shareLeft = lifetimeUs <= shortLifetimeUs ? 1 / 2 : 1 / 3;
  const atUs = endsUs - lifetimeUs * (shareLeft + draw * renewalJitterShare);
  return { atUs: Math.round(atUs), because: 'share' };
}

/** True when less of the lifetime is left than the share for retries. */
export function isNearEnd(certificate: Validity | null, nowUs: number): boolean {
  if (certificate === null) return false;
  const { endsUs, lifetimeUs } = lifeOf(certificate);
  return endsUs - nowUs < lifetimeUs * shareKept;
}

function lifeOf({ notBefore, notAfter }: Validity) {
  const beginsUs = notBefore.getTime() * 1000;
  const endsUs = notAfter.getTime() * 1000;
  return { beginsUs, endsUs, lifetimeUs: endsUs - beginsUs };
}

/** Delays after the first failures; the last one is repeated. */
const retryDelaysUs = [1, 2, 5, 10, 30, 60, 120, 240, 360].map((minutes) => minutes * minuteUs);
/** Maximum extension of a delay, so that many receivers do not retry at the same time. */
const retryJitterShare = 1 / 4;

/**
 * Returns the time of the next attempt after `failures` in a row (1 for the first). A longer delay requested by
 * the authority applies instead.
 */
export function retryTime(
  failures: number,
  failed: { nowUs: number; retryAfterMs: number | null; random: () => number },
): number {
  const delayUs = retryDelaysUs[Math.min(failures, retryDelaysUs.length) - 1] ?? 0;
  const waitUs = Math.max(delayUs, (failed.retryAfterMs ?? 0) * 1000);
  return failed.nowUs + Math.round(waitUs * (1 + retryJitterShare * failed.random()));
}

/** True during the delay after a failure. A clock that was set back does not extend it. */
export function isWaiting(state: RenewalState, nowUs: number): boolean {
  const { nextTryAtUs, lastAttemptAtUs } = state;
  if (nextTryAtUs === null || nowUs >= nextTryAtUs) return false;
  return lastAttemptAtUs === null || nowUs >= lastAttemptAtUs;
}

/**
 * Maximum time that a certificate counts as new, and the share of its lifetime. With one in two days, an authority
 * that always issues faulty certificates stays below Let's Encrypt's limit of five per week.
 */
const freshUsMax = 2 * dayUs;
const freshShare = 1 / 4;

/**
 * Returns until when the certificate is too new to be replaced automatically; null if it is not. A new one that is
 * already due means a wrong clock or a fault of the authority, and the next one would be due too.
 */
export function freshUntilUs(
  { lastSuccessAtUs }: RenewalState,
  nowUs: number,
  certificate: Validity,
): number | null {
  // A success in the future: the clock was set back.
  if (lastSuccessAtUs === null || nowUs < lastSuccessAtUs) return null;
  const { lifetimeUs } = lifeOf(certificate);
  const untilUs = lastSuccessAtUs + Math.min(freshUsMax, lifetimeUs * freshShare);
  return nowUs < untilUs ? Math.round(untilUs) : null;
}

/** Maximum certificates in 24 hours: enough in practice, and below the limits of authorities. */
const issuesPerDay = 5;
/** A shorter lifetime is assumed to be a mistake, and does not allow more orders. */
const shortestLifetimeUs = 60 * minuteUs;

/**
 * Returns when the next certificate is allowed if the daily maximum is reached, else null. Let's Encrypt allows five
 * certificates per name and week. Lifetimes of hours need more, which their authorities allow.
 */
export function capEndsAtUs(
  state: RenewalState,
  nowUs: number,
  certificate: Validity | null,
): number | null {
  const lifetimeUs =
    certificate === null ? Number.POSITIVE_INFINITY : lifeOf(certificate).lifetimeUs;
  const countedUs = Math.max(lifetimeUs, shortestLifetimeUs);
  const issuesMax = Math.max(issuesPerDay, Math.ceil((4 * dayUs) / countedUs));
  // Ignores times in the future: the clock was set back.
  const first = issuedLastDay(state, nowUs)
    .filter((atUs) => atUs <= nowUs)
    .at(-issuesMax);
  return first === undefined ? null : first + dayUs;
}

function issuedLastDay({ issuedAtUs }: RenewalState, nowUs: number): number[] {
  return issuedAtUs.filter((atUs) => atUs > nowUs - dayUs);
}

/**
 * Returns the id of a certificate for renewal information (RFC 9773, 4.1):
 * `base64url(key identifier of the issuer).base64url(serial number)`; null without that identifier.
 */
export function certificateIdOf(chainPem: string): string | null {
  const parsed = new ParsedCertificate(new X509Certificate(chainPem).raw);
  const keyId = keyIdOf(parsed);
  if (keyId === undefined) return null;
  const serial = Buffer.from(parsed.serialNumber, 'hex');
  // DER adds a zero byte before a number whose first bit is set.
  const octets = (serial[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${octets.toString('base64url')}`;
}

/** Returns undefined for an invalid identifier, which must not prevent a renewal. */
function keyIdOf(parsed: ParsedCertificate): string | undefined {
  try {
    return parsed.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  } catch {
    return undefined;
  }
}

/** Polling interval (RFC 9773, 4.3.2): of the authority, from a minute to a day; else six hours. */
const pollIntervalUs = { min: minuteUs, usual: 6 * 60 * minuteUs, max: dayUs };

/** Returns the stored window of this certificate; null if it is unknown or of another one. */
export function windowOf(
  { renewalInfo }: RenewalState,
  { cert }: Pick<OwnCertificate, 'cert'>,
): TimeWindow | null {
  if (renewalInfo === null || renewalInfo.certificateId !== certificateIdOf(cert)) return null;
  return renewalInfo.window;
}

/** True when the renewal information of this certificate is unknown or old. */
export function isRenewalInfoStale(
  state: RenewalState,
  { cert }: OwnCertificate,
  nowUs: number,
): boolean {
  const certificateId = certificateIdOf(cert);
  if (certificateId === null) return false;
  const { renewalInfo } = state;
  if (renewalInfo?.certificateId !== certificateId) return true;
  const leftUs = renewalInfo.askAgainAtUs - nowUs;
  // More than a day ahead: the clock was set back.
  return leftUs <= 0 || leftUs > pollIntervalUs.max;
}

/**
 * Requests the renewal information and saves it. On failure, keeps the last window of this certificate, saves the
 * time of the next request, and rejects with AcmeProblem.
 */
export async function refreshRenewalInfo(
  context: AcmeContext,
  state: RenewalState,
  certificate: OwnCertificate,
): Promise<void> {
  const { states, nowUs } = context;
  const certificateId = certificateIdOf(certificate.cert);
  if (certificateId === null) return;
  const save = (window: TimeWindow | null, afterUs: number) => {
    const askAgainAtUs = nowUs() + afterUs;
    return states.write({ ...state, renewalInfo: { certificateId, window, askAgainAtUs } });
  };
  try {
    const authority = await openAuthority(context);
    const { renewalInfo: url } = await authority.readDirectory();
    if (url === undefined) return await save(null, pollIntervalUs.max);
    const { startUs, endUs, retryAfterMs } = await authority.readRenewalInfo(url, certificateId);
    const { min, usual, max } = pollIntervalUs;
    const requestedUs = retryAfterMs === null ? usual : retryAfterMs * 1000;
    await save({ startUs, endUs }, Math.min(Math.max(requestedUs, min), max));
  } catch (problem) {
    await save(windowOf(state, certificate), pollIntervalUs.usual);
    throw problem;
  }
}

/**
 * Returns the state of the renewal from the files, without a request; `due` is null without a certificate of this
 * authority for this name. Rejects with `configuration` for invalid files.
 */
export async function renewalOutlook(
  folder: Pick<AcmeFolder, 'readCertificate' | 'readState'>,
  order: { directoryUrl: string; host: string },
  nowUs: number,
): Promise<{
  certificate: OwnCertificate | null;
  state: RenewalState;
  due: RenewalTime | null;
  issuedLastDay: number;
}> {
  const certificate = await folder.readCertificate();
  const state = stateFor(order, await folder.readState());
  const isOurs = certificate !== null && isFor(certificate, order);
  const due = isOurs ? renewalTime(certificate, windowOf(state, certificate)) : null;
  return { certificate, state, due, issuedLastDay: issuedLastDay(state, nowUs).length };
}
