/** What is known of the renewal without asking anybody: for those who look, and for the doctor. */
import type { AcmeFolder, OwnCertificate } from './acme-folder.ts';
import { isFor } from './certificate-order.ts';
import { windowOf } from './renewal-advice.ts';
import { type RenewalState, stateFor } from './renewal-state.ts';
import { type RenewalTime, renewalTime } from './renewal-time.ts';

const dayUs = 24 * 3_600_000_000;

export interface RenewalOutlook {
  certificate: OwnCertificate | null;
  state: RenewalState;
  /** Null without a certificate of this authority for this name. */
  due: RenewalTime | null;
  issuedLastDay: number;
}

/** Rejects with `configuration` for files that are not ours. */
export async function renewalOutlook(
  folder: Pick<AcmeFolder, 'readCertificate' | 'readState'>,
  order: { directoryUrl: string; host: string },
  nowUs: number,
): Promise<RenewalOutlook> {
  const certificate = await folder.readCertificate();
  const state = stateFor(order, await folder.readState());
  const isOurs = certificate !== null && isFor(certificate, order);
  const due = isOurs ? renewalTime(certificate, windowOf(state, certificate)) : null;
  const issuedLastDay = state.issuedAtUs.filter((atUs) => atUs > nowUs - dayUs).length;
  return { certificate, state, due, issuedLastDay };
}
