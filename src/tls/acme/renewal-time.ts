/** When a certificate is renewed: by its lifetime or its authority's advice; and when after failures, and how often. */
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

/** `cert` is PEM, to tell one certificate from another. */
export type CertificateLife = Validity & { cert: string };

export interface TimeWindow {
  startUs: number;
  endUs: number;
}

export interface RenewalTime {
  atUs: number;
  /** `share` of its lifetime, the `authority`'s advice, or `expiry`, which that advice left too near. */
  because: 'share' | 'authority' | 'expiry';
}

/** Up to here a lifetime is short: then half of it must be left, as days for retries are few. */
const shortLifetimeUs = 10 * dayUs;
/** However late an authority advises to renew, this share of the lifetime stays for retries. */
const shareKept = 1 / 10;
/** Certificates of one age are not all renewed in the same minute. */
const renewalJitterShare = 1 / 50;

/**
 * With a third of the lifetime left, of a short-lived one half; at a time within the authority's window
 * where it gives one (RFC 9773, 4.2), but never so late that expiry comes near. The same certificate
 * always has the same time in a window: a restart does not draw again.
 */
export function renewalTime(certificate: CertificateLife, window: TimeWindow | null): RenewalTime {
  const { beginsUs, endsUs, lifetimeUs } = lifeOf(certificate);
  // A number in [0, 1) that belongs to the certificate.
  const draw = Number.parseInt(hash('sha256', certificate.cert).slice(0, 8), 16) / 2 ** 32;
  if (window !== null && window.endUs >= window.startUs) {
    const adviceUs = window.startUs + draw * (window.endUs - window.startUs);
    const latestUs = endsUs - lifetimeUs * shareKept;
    if (adviceUs <= latestUs) {
      return { atUs: Math.round(Math.max(adviceUs, beginsUs)), because: 'authority' };
    }
    return { atUs: Math.round(latestUs), because: 'expiry' };
  }
  const shareLeft = lifetimeUs <= shortLifetimeUs ? 1 / 2 : 1 / 3;
  const atUs = endsUs - lifetimeUs * (shareLeft + draw * renewalJitterShare);
  return { atUs: Math.round(atUs), because: 'share' };
}

/** True when a certificate has less of its life left than advice may use up. */
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

/** The pauses after the first failures; the last one stays. */
const pausesUs = [1, 2, 5, 10, 30, 60, 120, 240, 360].map((minutes) => minutes * minuteUs);
/** A pause may be longer by this share, so that many receivers do not return together. */
const retryJitterShare = 1 / 4;

/**
 * The time of the next attempt after `failures` in a row (1 for the first). What the authority asks for
 * counts where it is longer.
 */
export function retryTime(
  failures: number,
  failed: { nowUs: number; retryAfterMs: number | null; random: () => number },
): number {
  const pauseUs = pausesUs[Math.min(failures, pausesUs.length) - 1] ?? 0;
  const waitUs = Math.max(pauseUs, (failed.retryAfterMs ?? 0) * 1000);
  return failed.nowUs + Math.round(waitUs * (1 + retryJitterShare * failed.random()));
}

/** True while a failure is too fresh. A clock that was set back must not stretch the pause. */
export function isWaiting(state: RenewalState, nowUs: number): boolean {
  const { nextTryAtUs, lastAttemptAtUs } = state;
  if (nextTryAtUs === null || nowUs >= nextTryAtUs) return false;
  return lastAttemptAtUs === null || nowUs >= lastAttemptAtUs;
}

/**
 * The longest time that a certificate counts as just issued, and the share of its life. At one in two days an
 * authority that errs permanently stays below Let's Encrypt's five in a week.
 */
const freshUsMax = 2 * dayUs;
const freshShare = 1 / 4;

/**
 * Until when the certificate in use is too new to be replaced automatically; null when it is not. One that
 * is due at once shows a clock that is wrong or an authority that errs, and so would the next one be.
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

/** Maximum certificates in 24 hours: enough for every honest need, below every authority's limit. */
const issuesPerDay = 5;
/** A shorter lifetime must be a mistake, and is not worth more orders. */
const shortestLifetimeUs = 60 * minuteUs;

/**
 * While the limit of the day is reached: when it ends; else null. Let's Encrypt gives five certificates
 * for the same name in a week; those that live for hours need more, from authorities that issue such.
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
  // Those from the future, as a clock was set back, are of no day that is known.
  const first = issuedLastDay(state, nowUs)
    .filter((atUs) => atUs <= nowUs)
    .at(-issuesMax);
  return first === undefined ? null : first + dayUs;
}

function issuedLastDay({ issuedAtUs }: RenewalState, nowUs: number): number[] {
  return issuedAtUs.filter((atUs) => atUs > nowUs - dayUs);
}

/**
 * How an authority knows a certificate when it is asked for its advice (RFC 9773, 4.1):
 * `base64url(key identifier of the issuer).base64url(serial number)`; null without that identifier.
 */
export function certificateIdOf(chainPem: string): string | null {
  const parsed = new ParsedCertificate(new X509Certificate(chainPem).raw);
  const keyId = keyIdOf(parsed);
  if (keyId === undefined) return null;
  const serial = Buffer.from(parsed.serialNumber, 'hex');
  // The id is of DER's bytes, where a number whose first bit is set has a zero before it.
  const octets = (serial[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  return `${Buffer.from(keyId, 'hex').toString('base64url')}.${octets.toString('base64url')}`;
}

/** An identifier that cannot be read is none: a request for advice must prevent no renewal. */
function keyIdOf(parsed: ParsedCertificate): string | undefined {
  try {
    return parsed.getExtension(AuthorityKeyIdentifierExtension)?.keyId;
  } catch {
    return undefined;
  }
}

/** RFC 9773, 4.3.2: as the authority says, within a minute and a day; else every six hours. */
const askAgainUs = { min: minuteUs, usual: 6 * 60 * minuteUs, max: dayUs };

/** The advised window for exactly this certificate: advice on an earlier one does not apply to it. */
export function windowOf(
  { renewalInfo }: RenewalState,
  { cert }: Pick<OwnCertificate, 'cert'>,
): TimeWindow | null {
  if (renewalInfo === null || renewalInfo.certificateId !== certificateIdOf(cert)) return null;
  return renewalInfo.window;
}

/** True when the advice on this certificate is unknown, or old. */
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
  // More than a day ahead: a clock was set back.
  return leftUs <= 0 || leftUs > askAgainUs.max;
}

/**
 * Asks for advice, and saves the answer. Where none can be had, the last one on this certificate stays. Rejects
 * with AcmeProblem after having noted when to ask again.
 */
export async function refreshRenewalInfo(
  context: AcmeContext,
  state: RenewalState,
  certificate: OwnCertificate,
): Promise<void> {
  const { states, nowUs } = context;
  const certificateId = certificateIdOf(certificate.cert);
  if (certificateId === null) return;
  const note = (window: TimeWindow | null, afterUs: number) => {
    const askAgainAtUs = nowUs() + afterUs;
    return states.write({ ...state, renewalInfo: { certificateId, window, askAgainAtUs } });
  };
  try {
    const authority = await openAuthority(context);
    const { renewalInfo: url } = await authority.readDirectory();
    if (url === undefined) return await note(null, askAgainUs.max);
    const { startUs, endUs, retryAfterMs } = await authority.readRenewalInfo(url, certificateId);
    const saidUs = retryAfterMs === null ? askAgainUs.usual : retryAfterMs * 1000;
    await note({ startUs, endUs }, Math.min(Math.max(saidUs, askAgainUs.min), askAgainUs.max));
  } catch (problem) {
    await note(windowOf(state, certificate), askAgainUs.usual);
    throw problem;
  }
}

/**
 * What the files say about the renewal, without a request; `due` is null without a certificate of this authority for
 * this name. Rejects with `configuration` for files that are not ours.
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
