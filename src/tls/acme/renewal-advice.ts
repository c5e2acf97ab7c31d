/** The authority's advice when to renew (RFC 9773): asked for now and then, kept with the state. */

import type { OwnCertificate } from './acme-folder.ts';
import type { AcmeWorld } from './acme-world.ts';
import { certificateIdOf } from './certificate-id.ts';
import { visitAuthority } from './enter-authority.ts';
import type { RenewalState } from './renewal-state.ts';

const minuteUs = 60_000_000;
/** RFC 9773, 4.3.2: as the authority says, within a minute and a day; else every six hours. */
const askAgainUs = { min: minuteUs, usual: 6 * 60 * minuteUs, max: 24 * 60 * minuteUs };

/** The window for exactly this certificate: advice on an earlier one says nothing about it. */
export function windowOf(
  { renewalInfo }: RenewalState,
  { cert }: Pick<OwnCertificate, 'cert'>,
): { startUs: number; endUs: number } | null {
  if (renewalInfo === null || renewalInfo.certificateId !== certificateIdOf(cert)) return null;
  return renewalInfo.window;
}

/** True when the advice on this certificate is unknown, or old. */
export function isAdviceOld(state: RenewalState, { cert }: OwnCertificate, nowUs: number): boolean {
  const certificateId = certificateIdOf(cert);
  if (certificateId === null) return false;
  const { renewalInfo } = state;
  if (renewalInfo?.certificateId !== certificateId) return true;
  const leftUs = renewalInfo.askAgainAtUs - nowUs;
  // More than a day ahead: a clock was set back.
  return leftUs <= 0 || leftUs > askAgainUs.max;
}

/**
 * Asks, and keeps the answer. Where none can be had, the last one on this certificate stays. Rejects
 * with AcmeProblem after having noted when to ask again.
 */
export async function refreshAdvice(
  world: AcmeWorld,
  state: RenewalState,
  certificate: OwnCertificate,
): Promise<void> {
  const { states, nowUs } = world;
  const certificateId = certificateIdOf(certificate.cert);
  if (certificateId === null) return;
  const note = (window: { startUs: number; endUs: number } | null, afterUs: number) => {
    const askAgainAtUs = nowUs() + afterUs;
    return states.write({ ...state, renewalInfo: { certificateId, window, askAgainAtUs } });
  };
  try {
    const authority = await visitAuthority(world);
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
