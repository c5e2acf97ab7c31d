/** When a certificate is to be renewed: by its lifetime, or as its authority advises. */
import { hash } from 'node:crypto';

/** What of a certificate counts here. */
export interface CertificateLife {
  /** PEM; only to tell one certificate from another. */
  cert: string;
  notBefore: Date;
  notAfter: Date;
}

export interface RenewalTime {
  atUs: number;
  /** `share` of its lifetime, the `authority`'s advice, or `expiry`, which that advice left too near. */
  because: 'share' | 'authority' | 'expiry';
}

const dayUs = 24 * 3_600_000_000;

/** Up to here a lifetime is short: then half of it must be left, as days for retries are few. */
const shortLifetimeUs = 10 * dayUs;

/** However late an authority advises to renew, this share of the lifetime stays for retries. */
const shareKept = 1 / 10;

/** Certificates of one age are not all renewed in the same minute. */
const jitterShare = 1 / 50;

/**
 * With a third of the lifetime left, of a short-lived one half; at a time within the authority's window
 * where it gives one (RFC 9773, 4.2), but never so late that expiry comes near. The same certificate
 * always has the same time in a window: a restart does not draw again.
 */
export function renewalTime(
  certificate: CertificateLife,
  window: { startUs: number; endUs: number } | null,
): RenewalTime {
  const beginsUs = certificate.notBefore.getTime() * 1000;
  const endsUs = certificate.notAfter.getTime() * 1000;
  const lifetimeUs = endsUs - beginsUs;
  const draw = drawOf(certificate.cert);
  if (window !== null && window.endUs >= window.startUs) {
    const adviceUs = window.startUs + draw * (window.endUs - window.startUs);
    const latestUs = endsUs - lifetimeUs * shareKept;
    if (adviceUs <= latestUs) {
      return { atUs: Math.round(Math.max(adviceUs, beginsUs)), because: 'authority' };
    }
    return { atUs: Math.round(latestUs), because: 'expiry' };
  }
  const shareLeft = lifetimeUs <= shortLifetimeUs ? 1 / 2 : 1 / 3;
  const atUs = endsUs - lifetimeUs * (shareLeft + draw * jitterShare);
  return { atUs: Math.round(atUs), because: 'share' };
}

/** True when a certificate has less of its life left than advice may use up. */
export function isNearEnd(certificate: CertificateLife | null, nowUs: number): boolean {
  if (certificate === null) return false;
  const endsUs = certificate.notAfter.getTime() * 1000;
  const lifetimeUs = endsUs - certificate.notBefore.getTime() * 1000;
  return endsUs - nowUs < lifetimeUs * shareKept;
}

/** A number in [0, 1) that belongs to the certificate. */
function drawOf(cert: string): number {
  return Number.parseInt(hash('sha256', cert).slice(0, 8), 16) / 2 ** 32;
}
