/** What must be known across restarts to be gentle with an authority: failures, issues, its advice. */
import { z } from 'zod';

const atUs = z.number().int();

export const renewalStateSchema = z.object({
  /** Whose state it is: another authority or name begins anew. */
  directoryUrl: z.string(),
  host: z.string(),
  /** Failures since the last success. */
  failures: z.number().int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  lastFailure: z.object({ atUs, message: z.string() }).nullable(),
  /** After a failure: not to be tried before. */
  nextTryAtUs: atUs.nullable(),
  /** Certificates issued in the last days. */
  issuedAtUs: z.array(atUs),
  /** The authority's advice on one certificate (RFC 9773). */
  renewalInfo: z
    .object({
      certificateId: z.string(),
      /** Null while it could not be had. */
      window: z.object({ startUs: atUs, endUs: atUs }).nullable(),
      askAgainAtUs: atUs,
    })
    .nullable(),
});

export type RenewalState = z.infer<typeof renewalStateSchema>;

/** What was saved, where it is about this authority and name; else the state before the first try. */
export function stateFor(
  order: { directoryUrl: string; host: string },
  saved: RenewalState | null,
): RenewalState {
  const isOurs = saved?.directoryUrl === order.directoryUrl && saved.host === order.host;
  if (isOurs) return saved;
  return {
    directoryUrl: order.directoryUrl,
    host: order.host,
    failures: 0,
    lastAttemptAtUs: null,
    lastSuccessAtUs: null,
    lastFailure: null,
    nextTryAtUs: null,
    issuedAtUs: [],
    renewalInfo: null,
  };
}

const dayUs = 24 * 3_600_000_000;

/** The state after a certificate was issued. */
export function afterSuccess(state: RenewalState, nowUs: number): RenewalState {
  const recent = state.issuedAtUs.filter((issuedUs) => issuedUs > nowUs - 7 * dayUs);
  return {
    ...state,
    failures: 0,
    lastAttemptAtUs: nowUs,
    lastSuccessAtUs: nowUs,
    nextTryAtUs: null,
    issuedAtUs: [...recent, nowUs],
    renewalInfo: null,
  };
}

/** The state after a failure; `message` is in our own words, and shown to the user. */
export function afterFailure(
  state: RenewalState,
  failure: { nowUs: number; message: string; nextTryAtUs: number },
): RenewalState {
  const { nowUs, message, nextTryAtUs } = failure;
  return {
    ...state,
    failures: state.failures + 1,
    lastAttemptAtUs: nowUs,
    lastFailure: { atUs: nowUs, message },
    nextTryAtUs,
  };
}
